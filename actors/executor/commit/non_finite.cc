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
  std::string what = "a gradient is not finite";
  for (const StageRuntime& stage : stages) {
    const auto name = verdict.first_non_finite_parameter
                          ? stage.name_of_parameter(*verdict.first_non_finite_parameter)
                          : std::nullopt;
    if (name) {
      const at::Tensor sum = stage.buckets.gradient_sum(*name);
      const bool finite = sum.defined() && at::isfinite(sum).all().item<bool>();
      what =
          fmt::format("the gradient of {} is {}",
                      *name,
                      finite ? "finite, but its square is too large for its type" : "not finite");
      place.rank.reset();  // the message is about this rank
      place.stage = stage.program->id;
    }
  }
  throw Error(
      Errc::NonFinite,
      fmt::format("{}; no weight was changed: lower the learning rate, or clip gradients", what))
      .with(place);
}

}  // namespace stagecraft
