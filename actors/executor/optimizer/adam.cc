#include "stagecraft/actors/executor/optimizer/adam.h"

#include <ATen/ops/_fused_adam.h>

#include "stagecraft/actors/executor/optimizer/fused_adam.h"

namespace stagecraft {

std::vector<std::string> OptimizerRow<Adam>::states(const Adam& adam) {
  return adam_states(adam.amsgrad);
}

void OptimizerRow<Adam>::update(const Adam& adam,
                                const UpdatePass& pass,
                                ParameterColumns& columns) {
  run_fused_adam([](auto&&... a) { at::_fused_adam_(a...); }, adam, pass, columns);
}

}  // namespace stagecraft
