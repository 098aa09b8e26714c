#include "stagecraft/actors/executor/commit.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

void refuse_non_finite(const CompiledProgram& program, const VoteResult& verdict, Step step) {
  if (verdict.all_finite) {
    return;
  }
  ErrorContext place{.rank = verdict.first_non_finite_rank, .step = step};
  std::string what = "a gradient";
  if (verdict.first_non_finite_parameter) {
    const int parameter = static_cast<int>(*verdict.first_non_finite_parameter);
    what = "the gradient of " + program.graph.parameters[static_cast<std::size_t>(parameter)].name;
    for (const StageProgram& stage : program.partition.stages) {
      if (std::ranges::find(stage.parameters, parameter) != stage.parameters.end()) {
        place.stage = stage.id;
      }
    }
  }
  Error error(
      Errc::NonFinite,
      fmt::format(
          "{} is not finite; no weight was changed: lower the learning rate, or clip gradients",
          what));
  error.with(place);
  throw error;
}

double clip_scale(const std::optional<double>& clip, double norm) {
  constexpr double kGuard = 1e-6;  // against division by zero, as is customary
  return clip ? std::min(1.0, *clip / (norm + kGuard)) : 1.0;
}

}  // namespace stagecraft
