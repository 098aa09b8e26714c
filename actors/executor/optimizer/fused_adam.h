/// fused_adam holds the state and the call that AdamW and Adam share. Their kernels differ in where
/// they apply the weight decay.
#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/update_pass.h"

namespace stagecraft {

inline std::vector<std::string> adam_states(bool amsgrad) {
  std::vector<std::string> names{"exp_avg", "exp_avg_sq"};
  if (amsgrad) {
    names.emplace_back("max_exp_avg_sq");
  }
  return names;
}

/// `kernel`: at::_fused_adam_ or at::_fused_adamw_.
template <class Kernel, class Record>
void run_fused_adam(const Kernel& kernel,
                    const Record& adam,
                    const UpdatePass& pass,
                    ParameterColumns& columns) {
  kernel(columns.parameters,
         columns.gradients,
         columns.state[0],
         columns.state[1],
         adam.amsgrad ? columns.state[2] : std::vector<at::Tensor>{},
         pass.steps(columns),
         pass.rate,
         adam.beta1,
         adam.beta2,
         pass.decay,
         adam.eps,
         adam.amsgrad,
         /*maximize=*/false,
         pass.grad_scale(columns));
}

}  // namespace stagecraft
