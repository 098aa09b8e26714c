/// BlockDomain: what a fused pass is cut into blocks over: the rows along the last dimension of the
/// largest value of a trace.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "stagecraft/compiler/fuse/trace.h"

namespace stagecraft {

struct BlockDomain {
  std::vector<std::int64_t> rows;  ///< all dimensions but the last
  std::int64_t columns = 0;
  std::vector<std::size_t> order;    ///< of the dimensions of rows, outermost in memory first
  std::vector<std::int64_t> extent;  ///< of a block: how many indices of each
  std::size_t split = 0;  ///< the dimension of which a block has some; it has 1 of outer ones
  /// Every block begins at a whole vector, as counted from where each thread of LibTorch begins.
  bool aligned = false;

  /// Numbers of whole and begun blocks along the split dimension, and of blocks in all.
  [[nodiscard]] std::int64_t chunks() const;
  [[nodiscard]] std::int64_t blocks() const;
  /// Whether a value can be read or written block by block: its rows are those, or one for all.
  [[nodiscard]] bool takes(const TensorFacts& value) const;
  /// Whether it has every row.
  [[nodiscard]] bool fills(const TensorFacts& value) const;
  /// Strides of a dense tensor of that many indices and columns, in the domain's order.
  [[nodiscard]] std::vector<std::int64_t> dense_strides(
      const std::vector<std::int64_t>& sizes) const;
};

/// Over the largest value; nothing where no value has two dimensions. On a thread with the count of
/// LibTorch's threads that the trace was made with.
[[nodiscard]] std::optional<BlockDomain> domain_of(const Trace& trace);

}  // namespace stagecraft
