#include "stagecraft/actors/executor/run/order_check.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

/// Returns whether a mean can have the weight. An evaluation may leave a microbatch out.
bool is_weight(double weight, bool training) {
  return std::isfinite(weight) && (training ? weight > 0.0 : weight >= 0.0);
}

/// Returns whether the rank knows the program with all shapes of the order.
bool knows_shapes(const RankPrograms& programs, const StepOrder& order) {
  bool known = programs.knows(order.program, /*shape=*/0);
  for (const PartRun& run : order.parts) {
    known = known && programs.knows(order.program, run.shape);
  }
  return known;
}

/// Returns whether the runs are all microbatches of a step.
bool are_microbatches(const PartRuns& runs, int microbatches, bool training) {
  std::int64_t count = runs.empty() ? microbatches : 0;
  for (const PartRun& run : runs) {
    if (run.count <= 0 || !is_weight(run.weight, training)) {
      return false;
    }
    count += run.count;
  }
  return count == microbatches;
}

/// Returns whether the numbers are of these groups, in an update that follows `made` others.
bool are_numbers(const std::vector<std::int64_t>& numbers, std::size_t groups, std::int64_t made) {
  return numbers.empty() ||
         (numbers.size() == groups && std::ranges::all_of(numbers, [&](std::int64_t number) {
            return number >= 0 && number - 1 <= made;
          }));
}

}  // namespace

void check_order(const StepOrder& order,
                 const RankSetup& setup,
                 const RankPrograms& programs,
                 std::int32_t accumulated) {
  const auto refuse = [&](const std::string& what) {
    throw Error(Errc::PlanInvalid, what).with({.rank = setup.rank(), .step = order.step});
  };
  if (!knows_shapes(programs, order)) {
    refuse(
        "a step was ordered for a program or a shape of microbatches that this rank was not "
        "told of");
  }
  if (!are_microbatches(
          order.parts, setup.train.tables->microbatches, order.program == kTraining)) {
    refuse(
        fmt::format("a step was ordered whose runs of microbatches are not the {} of the plan, "
                    "or have weights that no mean can have",
                    setup.train.tables->microbatches));
  }
  if (!is_possible(order.loss_scale, order.step.value)) {
    refuse("a step was ordered with a scale of losses that no run can have");
  }
  if (!are_numbers(order.group_numbers, setup.options.groups.size(), order.step.value)) {
    refuse("a step was ordered with updates of parameter groups that no run can have");
  }
  if (order.accumulated != 0 && order.accumulated != accumulated) {
    refuse(
        fmt::format("a batch was ordered after {} others of its update, and this rank keeps "
                    "the gradients of {}",
                    order.accumulated,
                    accumulated));
  }
}

}  // namespace stagecraft
