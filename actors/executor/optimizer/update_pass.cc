#include "stagecraft/actors/executor/optimizer/update_pass.h"

#include <ATen/ops/full.h>

namespace stagecraft {

std::vector<at::Tensor> UpdatePass::steps(const ParameterColumns& columns) const {
  const at::Tensor number = at::full(
      {}, static_cast<float>(step), columns.parameters.front().options().dtype(at::kFloat));
  return std::vector<at::Tensor>(columns.parameters.size(), number);
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
    return at::full({}, divisor, columns.parameters.front().options());
  }
  for (const at::Tensor& gradient : columns.gradients) {
    divide(gradient);
  }
  return std::nullopt;
}

}  // namespace stagecraft
