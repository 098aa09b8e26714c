#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

std::vector<int> PlanRequest::sizes() const {
  if (devices < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("a plan needs at least one device, found {}", devices));
  }
  if (batch < 1) {
    throw Error(Errc::UsageArgument,
                fmt::format("a step needs at least one sample, found a batch of {}", batch));
  }
  std::vector<int> found = microbatch_sizes;
  if (found.empty()) {
    found.push_back(costs.samples);
    for (const auto& [samples, operators] : costs.operators_at) {
      found.push_back(samples);
    }
    std::erase_if(found, [&](int samples) { return batch % samples != 0; });
    if (found.empty()) {
      throw Error(Errc::UsageArgument,
                  fmt::format("none of the measured microbatch sizes divides a batch of {}; choose "
                              "another batch, or measure a size that divides it",
                              batch));
    }
  }
  for (const int samples : found) {
    if (samples < 1 || batch % samples != 0) {
      throw Error(Errc::UsageArgument,
                  fmt::format("microbatches of {} do not divide a batch of {}; choose a size that "
                              "divides it",
                              samples,
                              batch));
    }
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

int PlanRequest::pieces() const {
  const auto& operators = costs.operators;
  const auto joined = std::count_if(operators.begin() + (operators.empty() ? 0 : 1),
                                    operators.end(),
                                    [](const OperatorCost& op) { return op.joined; });
  return static_cast<int>(std::ssize(operators) - joined);
}

std::optional<std::string> PlanRequest::lacks_pieces(std::string_view planner) const {
  const int found = pieces();
  if (found >= devices) {
    return std::nullopt;
  }
  return fmt::format(
      "{} gives every device at least one operator; found {} that can be separated, for {} "
      "devices; use at most {}",
      planner,
      found,
      devices,
      count_text(found, "device"));
}

}  // namespace stagecraft
