#include "stagecraft/actors/executor/optimizer/update_pass.h"

#include <ATen/ops/full.h>

namespace stagecraft {

std::vector<at::Tensor> UpdatePass::steps(const ParameterColumns& columns) const {
  return std::vector<at::Tensor>(columns.parameters.size(),
                                 at::full({}, static_cast<float>(step), at::kFloat));
}

void UpdatePass::divide(const at::Tensor& gradient) const {
  if (divisor != 1.0) {
    gradient.div_(divisor);
  }
}

std::optional<at::Tensor> UpdatePass::grad_scale(const ParameterColumns& columns) const {
  if (divisor == 1.0) {
    return std::nullopt;
  }
  if (columns.parameters.front().scalar_type() == at::kFloat) {
    return at::full({}, divisor, at::kFloat);
  }
  for (const at::Tensor& gradient : columns.gradients) {
    divide(gradient);
  }
  return std::nullopt;
}

}  // namespace stagecraft
