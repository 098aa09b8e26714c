/// ShardLayout places tensors of one type in a flat buffer, so that equal shards of it can belong
/// to different ranks.
///
///     | w 4096 elements        | b 10 |   | v 3000       ...padding |
///     |------ shard 0 ------|------ shard 1 ------|------ shard 2 --|
///
/// SD-1: with several shards, a shard ends in a tensor only behind a whole number of blocks of
///       kNormBlock elements, counted from the tensor's first one. So ranks add up the norm of a
///       divided tensor in the same blocks as one rank (GN-1), and an operator over a shard treats
///       all elements as it does over the whole.
/// SD-2: tensors begin at multiples of 64 bytes.
#pragma once

#include <cstdint>
#include <vector>

namespace stagecraft {

struct ShardLayout {
  std::vector<std::int64_t> begins;  ///< by tensor
  std::vector<std::int64_t> ends;    ///< likewise
  std::int64_t shard = 0;            ///< elements of a shard, padding included
  std::int32_t shards = 1;

  /// The elements [begin, end) of a tensor; empty for begin == end.
  struct Part {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::int64_t at = 0;  ///< where it begins in its shard

    [[nodiscard]] std::int64_t size() const { return end - begin; }
  };

  [[nodiscard]] std::int64_t size() const { return shard * shards; }
  /// Returns the part of a tensor that lies in a shard.
  [[nodiscard]] Part part(std::size_t tensor, std::int32_t of_shard) const;
};

/// Returns the layout of tensors with so many elements, in their order. `alignment`: the elements
/// in 64 bytes. A shard is as small as the padding of SD-1 and SD-2 allows, to a multiple of
/// kNormBlock; a single shard to a multiple of `alignment`.
[[nodiscard]] ShardLayout shard_layout(const std::vector<std::int64_t>& elements,
                                       std::int64_t alignment,
                                       std::int32_t shards);

}  // namespace stagecraft
