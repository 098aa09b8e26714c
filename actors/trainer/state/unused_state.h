/// UnusedState holds the parameters and buffers of a model that no stage has. No rank holds them,
/// so the trainer keeps their values.
///
/// A Trainer owns it and uses it on its caller's thread. Checkpoints and state_dict contain them,
/// and evaluations may read them (KP-2).
#pragma once

#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

class UnusedState {
 public:
  /// Copies the values with which the program was compiled.
  explicit UnusedState(const CompiledProgram& program);

  /// Returns the living tensors, under their names in checkpoints.
  [[nodiscard]] const std::vector<StateTensor>& tensors() const { return tensors_; }

  /// Replaces the values. Requires: `state` has all of them.
  void replace(const std::map<std::string, at::Tensor>& state);

 private:
  std::vector<StateTensor> tensors_;
};

}  // namespace stagecraft
