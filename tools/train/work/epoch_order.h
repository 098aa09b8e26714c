/// EpochOrder says which batch of fixed data each batch of a run is.
///
/// The first epoch has the data in their order, and each further one in an order of its own, drawn
/// from the seed. A work uses it, and so do ranks that read the data themselves; single-threaded.
/// EO-1: the order depends on (seed, number) and the number of batches alone, so that a resumed run
///       gets the same batches.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace stagecraft::tools {

class EpochOrder {
 public:
  /// `batches`: of the data, at least one.
  EpochOrder(std::uint64_t seed, std::int64_t batches) : seed_(seed), batches_(batches) {}

  /// Returns the batch of the data for batch `number` of the run; both count from 0.
  [[nodiscard]] std::int64_t of(std::int64_t number);

 private:
  const std::uint64_t seed_;
  const std::int64_t batches_;
  std::int64_t epoch_ = 0;
  at::Tensor order_;  ///< of this epoch; undefined in the first
};

}  // namespace stagecraft::tools
