/// Workload is a module and its loss as functions of tensors, with the tensors that they own.
///
/// `compile` makes it from its caller's module; capture and the check of the replay run it. Later
/// passes do not know the module. A Workload calls the module and must not outlive it. A
/// ModuleSource makes a new one whenever one is needed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/module/named_tensor.h"

namespace stagecraft {

using Tensors = std::vector<at::Tensor>;

struct Workload {
  std::function<Tensors(const Tensors& inputs)> forward;
  std::function<at::Tensor(const Tensors& outputs, const Tensors& labels)> loss;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  /// The training mode of the module and of each module below it; empty if the modes are unknown.
  std::vector<bool> modes;
  /// Sets all these modes; empty if they cannot be set.
  std::function<void(const std::vector<bool>&)> set_modes;
  /// True if the model was saved with its mode written into its operators. An evaluation sets the
  /// mode of these operators itself.
  bool modes_in_operators = false;
  /// The quantities that an evaluation computes in addition to the loss, which it may lack. It runs
  /// without gradients.
  std::vector<std::function<at::Tensor(const Tensors& outputs, const Tensors& labels)>> metrics;
  bool trains = true;
  std::vector<std::string> submodules;  ///< as LibTorch saves them; empty if unknown
};

/// ModuleSource provides the module again, for a microbatch of another shape (shape_captures.h) or
/// for an evaluation (evaluations.h).
struct ModuleSource {
  /// Returns the module in its present state; empty if there is none. Errors: CompileShape if it no
  /// longer exists.
  std::function<Workload()> workload;
  /// The reason why it can have no other shape, as the end of a sentence: "bert.pt2 was exported
  /// for that shape". Empty if it can.
  std::string one_shape;
};

}  // namespace stagecraft
