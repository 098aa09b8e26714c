/// ShardRows reads rows of shards, counted over all of them in their order.
///
/// It reads the bytes of the requested rows alone, and keeps some files open.
/// HS-1: an argument has one type and shape of a row in all shards.
/// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/data/shards/shard.h"
#include "stagecraft/compiler/tensor_files/tensor_bytes.h"

namespace stagecraft {

class ShardRows {
 public:
  /// Requires: at least one shard. Errors: UsageFile, naming both files, for a break of HS-1.
  explicit ShardRows(std::vector<Shard> shards);

  [[nodiscard]] std::int64_t rows() const { return ends_.back(); }
  /// Returns the arguments of the first shard, for types and shapes.
  [[nodiscard]] const std::vector<ShardArgument>& arguments() const {
    return shards_.front().arguments;
  }
  /// Returns the file with this row of an argument.
  [[nodiscard]] const std::string& file(std::size_t argument, std::int64_t row) const;

  /// Returns these rows of an argument. Shape: [rows, sizes of a row].
  /// Errors: UsageFile for a file that has become shorter.
  [[nodiscard]] at::Tensor read(std::size_t argument, std::span<const std::int64_t> rows);

 private:
  /// Returns the shard of a row, and the row's number in it.
  [[nodiscard]] std::pair<const Shard*, std::int64_t> place_of(std::int64_t row) const;
  [[nodiscard]] TensorFile& opened(const std::string& path);

  std::vector<Shard> shards_;
  std::vector<std::int64_t> ends_;  ///< rows of the shards up to and with each
  std::map<std::string, TensorFile> open_;
};

}  // namespace stagecraft
