#include "stagecraft/actors/executor/optimizer/custom_optimizer.h"

#include <set>

#include <fmt/format.h>

#include "stagecraft/actors/executor/optimizer/state_names.h"
#include "stagecraft/actors/executor/optimizer/update_pass.h"
#include "stagecraft/base/process/process_end.h"

namespace stagecraft {

std::string OptimizerRow<CustomOptimizer>::conflict(const CustomOptimizer& custom) {
  if (!custom.update) {
    return "update is empty: it is the callable that changes a parameter";
  }
  if (custom.name.empty()) {
    return "name is empty: checkpoints call the optimizer by it";
  }
  std::set<std::string> seen;
  for (const std::string& name : custom.state) {
    const std::string kind = name + ":";
    if (name.empty() || name.find(':') != std::string::npos || kind == kWeight || kind == kBuffer ||
        kind == kMaster || kind == kAverage || !seen.insert(name).second) {
      return fmt::format(
          "state has \"{}\": names are distinct, not empty, without a colon, and none of weight, "
          "buffer, master and average",
          name);
    }
  }
  return "";
}

std::vector<std::string> OptimizerRow<CustomOptimizer>::states(const CustomOptimizer& custom) {
  return custom.state;
}

void OptimizerRow<CustomOptimizer>::update(const CustomOptimizer& custom,
                                           const UpdatePass& pass,
                                           ParameterColumns& columns) {
  for (const OptimizedParameter* p : columns.rows) {
    pass.divide(p->gradient);
    const process_end::Elsewhere in_the_users_code;
    custom.update({.name = p->name,
                   .parameter = p->parameter,
                   .gradient = p->gradient,
                   .state = p->state,
                   .step = pass.step,
                   .learning_rate = pass.rate,
                   .weight_decay = pass.decay});
  }
}

}  // namespace stagecraft
