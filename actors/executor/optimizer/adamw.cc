#include "stagecraft/actors/executor/optimizer/adamw.h"

#include <ATen/ops/_fused_adamw.h>

#include "stagecraft/actors/executor/optimizer/fused_adam.h"

namespace stagecraft {

std::vector<std::string> OptimizerRow<AdamW>::states(const AdamW& adamw) {
  return adam_states(adamw.amsgrad);
}

void OptimizerRow<AdamW>::update(const AdamW& adamw,
                                 const UpdatePass& pass,
                                 ParameterColumns& columns) {
  run_fused_adam([](auto&&... a) { at::_fused_adamw_(a...); }, adamw, pass, columns);
}

}  // namespace stagecraft
