/// npy_shards finds samples in .npy files: `<shard>_arg<i>.npy` has argument i of the shard's
/// samples, one in each row. If samples have one argument, `<shard>.npy` is enough.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/data/shards/shard.h"

namespace stagecraft {

/// Returns the shards in the order of their names. `names`: of the folder's .npy files.
/// Errors: UsageFile for a name of another form, an argument that is missing or comes twice, and
///         columns first; those of read_npy_header and add_argument.
[[nodiscard]] std::vector<Shard> npy_shards(const std::string& folder,
                                            const std::vector<std::string>& names);

}  // namespace stagecraft
