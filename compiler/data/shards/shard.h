/// Shard is a part of a data set: rows, each of which is a sample, in one file or in a file for
/// each argument of the model.
///
/// One function for each form of shards finds the rows (npy_shards.h, safetensors_shards.h,
/// token_shards.h), and ShardRows reads them.
/// RF-1: row r of an argument is the `bytes` from `begin` + r * `bytes` on, and all rows lie in the
///       file as it was when the shard was found.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

namespace stagecraft {

struct ShardArgument {
  std::string file;
  std::uint64_t begin = 0;           ///< where the rows begin in the file, in bytes
  std::uint64_t bytes = 0;           ///< of a row
  at::ScalarType dtype = at::kLong;  ///< of the samples that are read
  std::vector<std::int64_t> sizes;   ///< of a row
  std::uint64_t token_bytes = 0;     ///< of a token, which becomes an int64; 0: stored as `dtype`
};

struct Shard {
  std::string name;  ///< for messages: its file, or the first of them
  std::int64_t rows = 0;
  std::vector<ShardArgument> arguments;
};

}  // namespace stagecraft
