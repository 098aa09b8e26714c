/// UnusedState holds the parameters and buffers of a model that no stage has. No rank holds them,
/// so the trainer keeps their values.
///
/// A Trainer owns it and uses it on its caller's thread. Checkpoints and state_dict contain them,
/// and evaluations may read them (KP-2).
#pragma once

#include <functional>
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

  /// Replaces the values by those that `source` returns for their names.
  void replace(const std::function<at::Tensor(const std::string&)>& source);

 private:
  std::vector<StateTensor> tensors_;
};

}  // namespace stagecraft
