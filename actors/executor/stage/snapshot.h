/// Snapshot holds the buffers that forwards write, to restore them after a step.
///
/// Weights and optimizer state need no snapshot: nothing changes them before the vote.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"

namespace stagecraft {

class Snapshot {
 public:
  /// Copies the written buffers of all stages.
  explicit Snapshot(const std::vector<StageRuntime>& stages);

  /// Copies the saved values back.
  void restore() const;

  /// Returns the saved copy of a tensor that has one; else the tensor itself.
  [[nodiscard]] at::Tensor as_it_was(const at::Tensor& living) const;

 private:
  struct Copy {
    at::Tensor living, kept;
  };
  std::vector<Copy> copies_;
};

}  // namespace stagecraft
