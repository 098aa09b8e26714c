/// EpochOrder says which item of the data (a batch, or a sample) comes at each place of a run.
///
/// Each epoch has every item once, in an order of its own, drawn from the seed. Ranks that read the
/// data themselves draw it too; single-threaded.
/// EO-1: the order depends on (seed, number) and the number of items alone, so that a resumed run
///       gets the same items.
/// Cost: 8 bytes for each item, for epochs with an order of their own.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stagecraft {

class EpochOrder {
 public:
  /// First is the order of the first epoch.
  enum class First : std::uint8_t { AsStored, Drawn };

  /// `count`: of the items, at least one.
  EpochOrder(std::uint64_t seed, std::int64_t count, First first = First::AsStored)
      : seed_(seed), count_(count), first_(first) {}

  [[nodiscard]] std::int64_t count() const { return count_; }

  /// Returns the item at place `number` of the run; both count from 0.
  [[nodiscard]] std::int64_t of(std::int64_t number) {
    return of(number / count_, number % count_);
  }
  /// Returns the item at a place of an epoch. Requires: a place below count().
  [[nodiscard]] std::int64_t of(std::int64_t epoch, std::int64_t place);

 private:
  std::uint64_t seed_;
  std::int64_t count_;
  First first_;
  std::int64_t epoch_ = -1;
  at::Tensor order_;  ///< of this epoch; undefined before one is drawn
};

}  // namespace stagecraft
