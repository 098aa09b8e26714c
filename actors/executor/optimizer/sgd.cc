#include "stagecraft/actors/executor/optimizer/sgd.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/_fused_sgd.h>

#include "stagecraft/actors/executor/optimizer/update_pass.h"

namespace stagecraft {

std::string OptimizerRow<Sgd>::conflict(const Sgd& sgd) {
  return sgd.nesterov && (sgd.momentum == 0.0 || sgd.dampening != 0.0)
             ? "nesterov needs a momentum above 0 and no dampening"
             : "";
}

std::vector<std::string> OptimizerRow<Sgd>::states(const Sgd& sgd) {
  return sgd.momentum != 0.0 ? std::vector<std::string>{"momentum"} : std::vector<std::string>{};
}

void OptimizerRow<Sgd>::update(const Sgd& sgd, const UpdatePass& pass, ParameterColumns& columns) {
  at::_fused_sgd_(columns.parameters,
                  columns.gradients,
                  columns.state.empty() ? std::vector<at::Tensor>{} : columns.state[0],
                  pass.decay,
                  sgd.momentum,
                  pass.rate,
                  sgd.dampening,
                  sgd.nesterov,
                  /*maximize=*/false,
                  /*is_first_step=*/pass.step == 1,
                  pass.grad_scale(columns));
}

}  // namespace stagecraft
