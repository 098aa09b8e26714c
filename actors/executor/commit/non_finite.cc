#include "stagecraft/actors/executor/commit/non_finite.h"

#include <string>

#include <ATen/ops/isfinite.h>
#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

void refuse_non_finite(const std::vector<StageRuntime>& stages,
                       const VoteResult& verdict,
                       Step step) {
  if (verdict.all_finite) {
    return;
  }
  ErrorContext place{.rank = verdict.first_non_finite_rank, .step = step};
  std::string what = "a gradient";
  for (const StageRuntime& stage : stages) {
    const auto name = verdict.first_non_finite_parameter
                          ? stage.name_of_parameter(*verdict.first_non_finite_parameter)
                          : std::nullopt;
    if (name) {
      what = "the gradient of " + *name;
      const at::Tensor sum = stage.buckets.gradient_sum(*name);
      if (sum.defined() && at::isfinite(sum).all().item<bool>()) {
        what += ", squared, is too large for its type: it";  // GN-1 counts it as not finite
      }
      place.rank.reset();  // the message is about this rank
      place.stage = stage.program->id;
    }
  }
  throw Error(
      Errc::NonFinite,
      fmt::format(
          "{} is not finite; no weight was changed: lower the learning rate, or clip gradients",
          what))
      .with(place);
}

}  // namespace stagecraft
