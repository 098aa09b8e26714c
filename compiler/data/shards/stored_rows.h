/// stored_rows finds the rows of one argument in a tensor that a file holds.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "stagecraft/compiler/data/shards/shard.h"

namespace stagecraft {

/// StoredTensor is where a file has a tensor, rows first.
struct StoredTensor {
  std::string file;
  std::string name;  ///< in the file, for messages; empty if it holds this tensor alone
  std::uint64_t begin = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<std::int64_t> sizes;
};

/// Adds the tensor's rows to the shard as its next argument; the first one says how many rows the
/// shard has. Requires: the file has all bytes of the tensor.
/// Errors: UsageFile for a tensor without dimensions, for rows without bytes, and for another
///         number of rows than the arguments before.
void add_argument(Shard& shard, const StoredTensor& tensor);

}  // namespace stagecraft
