#include "stagecraft/actors/executor/optimizer/adagrad.h"

#include <ATen/ops/_fused_adagrad.h>

#include "stagecraft/actors/executor/optimizer/update_pass.h"

namespace stagecraft {

std::vector<std::string> OptimizerRow<Adagrad>::states(const Adagrad&) {
  return {"sum"};
}

void OptimizerRow<Adagrad>::update(const Adagrad& adagrad,
                                   const UpdatePass& pass,
                                   ParameterColumns& columns) {
  at::_fused_adagrad_(columns.parameters,
                      columns.gradients,
                      columns.state[0],
                      pass.steps(columns),
                      pass.rate,
                      adagrad.lr_decay,
                      pass.decay,
                      adagrad.eps,
                      /*maximize=*/false,
                      pass.grad_scale(columns));
}

}  // namespace stagecraft
