/// Workload: a module and its loss as functions of tensors, with the tensors they own.
///
/// Made by `compile` from whatever its caller has, run by capture and by the check of the replay;
/// nothing behind those knows a module. It calls that module, and so lives no longer than it.
#pragma once

#include <functional>
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
};

}  // namespace stagecraft
