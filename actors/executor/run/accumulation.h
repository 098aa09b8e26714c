/// Accumulation is the state that a rank keeps between the batches of one update (AC-1): the number
/// of batches, and the buffers from before the first. The sums of gradients stay in the buckets.
///
/// The executor owns it and uses it on its plan thread.
///
///   none --keep(a batch)--> under way --keep(the last batch)--> none       the update is made
///                           under way --drop()----------------> none       buffers are restored
#pragma once

#include <cstdint>
#include <optional>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/snapshot.h"

namespace stagecraft {

class Accumulation {
 public:
  /// Returns the number of batches of the update so far.
  [[nodiscard]] std::int32_t batches() const { return batches_; }

  /// Counts a batch that the rank has trained on. `before`: the buffers before it. `updates`: the
  /// batch was the last of its update.
  void keep(const Snapshot& before, bool updates);

  /// Gives up the update: restores the buffers.
  void drop();

  /// Returns the tensor as it was after the last update; `living` itself if no batch has changed
  /// it.
  [[nodiscard]] at::Tensor committed(const at::Tensor& living) const;

 private:
  std::int32_t batches_ = 0;
  std::optional<Snapshot> before_update_;
};

}  // namespace stagecraft
