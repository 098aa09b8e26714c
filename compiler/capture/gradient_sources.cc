#include "stagecraft/compiler/capture/gradient_sources.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/csrc/autograd/variable.h>

namespace stagecraft {

void GradientSources::note(const at::Tensor& tensor, ValueId value) {
  if (!tensor.requires_grad()) {
    return;
  }
  if (const auto& node = tensor.grad_fn()) {
    sources_[{node.get(), static_cast<std::uint32_t>(tensor.output_nr())}] = {node, value};
  } else {
    leaves_[tensor.unsafeGetTensorImpl()] = value;
  }
}

std::optional<ValueId> GradientSources::value_of(const torch::autograd::Edge& edge) const {
  if (const auto* leaf =
          dynamic_cast<const torch::autograd::AccumulateGrad*>(edge.function.get())) {
    const auto found = leaves_.find(leaf->variable.unsafeGetTensorImpl());
    return found == leaves_.end() ? std::nullopt : std::optional(found->second);
  }
  const auto found = sources_.find({edge.function.get(), edge.input_nr});
  const bool same = found != sources_.end() && found->second.node.lock() == edge.function;
  return same ? std::optional(found->second.value) : std::nullopt;
}

}  // namespace stagecraft
