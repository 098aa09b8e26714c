/// DividedSquares adds up the squared norms of parameters that several shards of a bucket have.
/// Each shard has some blocks of their gradients, and ranks exchange sums of blocks to get the bits
/// of one rank (GN-1).
///
/// StageBuckets has one for each bucket.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/gradient_norm.h"
#include "stagecraft/actors/executor/stage/shard_layout.h"

namespace stagecraft {

class DividedSquares {
 public:
  /// Takes a parameter, by its number, if several shards have a part of it. `parts`: by shard.
  void add(std::size_t parameter, bool is_complex, const std::vector<ShardLayout::Part>& parts);

  /// Returns a shard's part of the squares: a flat tensor of doubles, of one size for all shards;
  /// empty if there are none. `gradient_of`: returns the shard's part of a parameter's gradient.
  [[nodiscard]] at::Tensor of_shard(
      std::int32_t shard,
      const std::function<at::Tensor(std::size_t parameter)>& gradient_of) const;

  /// Takes these parts of all shards, one after the other.
  void take(const at::Tensor& of_shards);

  /// Calls use(parameter, squared sum) for those that begin in the shard. Requires: take() was
  /// called.
  template <class Use>
  void for_each_first(std::int32_t shard, Use&& use) const {
    for (const Divided& divided : all_) {
      if (divided.first == shard) {
        use(divided.parameter, divided.squares);
      }
    }
  }

 private:
  struct Divided {
    std::size_t parameter = 0;
    std::int32_t first = 0;                          // the shard with its first element
    std::vector<std::int64_t> begins;                // by shard: of its part
    std::vector<std::vector<SquareTree::Run>> runs;  // by shard: of blocks; none without a part
    double squares = 0.0;
  };

  std::vector<Divided> all_;
  std::size_t width_ = 0;  // most runs of a part
};

}  // namespace stagecraft
