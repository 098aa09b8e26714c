/// Workload: a module and its loss as functions of tensors, with the tensors they own.
///
/// Made by `compile` from whatever its caller has, run by capture and by the check of the replay;
/// nothing behind those knows a module. It calls that module, and so lives no longer than it.
/// A ModuleSource makes one anew whenever it is needed.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/named_tensor.h"

namespace stagecraft {

using Tensors = std::vector<at::Tensor>;

struct Workload {
  std::function<Tensors(const Tensors& inputs)> forward;
  std::function<at::Tensor(const Tensors& outputs, const Tensors& labels)> loss;
  std::vector<NamedTensor> parameters;
  std::vector<NamedTensor> buffers;
  /// Whether the module and each module below it is in training mode; empty where nobody can tell.
  std::vector<bool> modes;
  /// Puts them all into such modes; empty where nobody can.
  std::function<void(const std::vector<bool>&)> set_modes;
  /// It was saved with its mode written into its operators: an evaluation tells these otherwise.
  bool modes_in_operators = false;
  /// An evaluation: what it computes beside the loss, which it may lack. It runs without gradients.
  std::vector<std::function<at::Tensor(const Tensors& outputs, const Tensors& labels)>> metrics;
  bool trains = true;
  std::vector<std::string> submodules;  ///< as LibTorch saves them; empty where nobody can tell
};

/// Where the module comes from once more, when a microbatch has another shape (variants.h), or to
/// be evaluated (evaluations.h).
struct ModuleSource {
  /// The module as it is by now; empty: there is none. Errors: CompileShape when it is gone.
  std::function<Workload()> workload;
  /// Why it can have no other shape, as the end of a sentence: "bert.pt2 was exported for that
  /// shape". Empty: it can.
  std::string one_shape;
};

}  // namespace stagecraft
