/// safetensors_shards finds samples in .safetensors files. Each file is a shard, and its tensors
/// are the arguments, a sample in each row.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/data/shards/shard.h"

namespace stagecraft {

/// Returns a shard for each file, in the order of `names`. A file has the tensors of `inputs`, the
/// names of the model's inputs, and may have others too, which are left out; or arg0, arg1, ...
/// alone.
/// Errors: UsageFile for a file with neither; those of read_safetensors_header and add_argument.
[[nodiscard]] std::vector<Shard> safetensors_shards(const std::string& folder,
                                                    const std::vector<std::string>& names,
                                                    const std::vector<std::string>& inputs);

}  // namespace stagecraft
