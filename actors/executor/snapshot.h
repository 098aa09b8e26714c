/// Snapshot: what a step must be able to give back: the buffers that forwards write.
///
/// Weights and optimizer state need none: nothing changes them before the vote.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_runtime.h"

namespace stagecraft {

class Snapshot {
 public:
  /// Copies those of all stages.
  explicit Snapshot(const std::vector<StageRuntime>& stages);

  /// Makes them again what they were.
  void restore() const;

  /// What a tensor was, where it is one of them; else itself.
  [[nodiscard]] at::Tensor as_it_was(const at::Tensor& living) const;

 private:
  struct Copy {
    at::Tensor living, kept;
  };
  std::vector<Copy> copies_;
};

}  // namespace stagecraft
