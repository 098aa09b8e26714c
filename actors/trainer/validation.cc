#include "stagecraft/actors/trainer/validation.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr const char* kLoss = "loss";

void require_of_validation(bool good, const std::string& what) {
  if (!good) {
    throw Error(Errc::UsageArgument, "fit: " + what);
  }
}

void check_unused(const Validation& v) {
  const bool unused = v.metrics.empty() && v.every == 0 && v.watch == kLoss &&
                      v.goal == Goal::Min && v.min_delta == 0.0 && !v.patience && !v.plateau &&
                      v.best_path.empty() && !v.on_evaluation;
  require_of_validation(
      unused,
      "validation has options and no data to evaluate: set validation.data, or leave the "
      "others out");
}

void check_plateau(const Plateau& plateau) {
  require_of_validation(
      plateau.factor > 0.0 && plateau.factor < 1.0,
      fmt::format("plateau.factor is above 0 and below 1, not {}", plateau.factor));
  require_of_validation(
      plateau.patience >= 1,
      fmt::format("plateau.patience is at least 1 evaluation, not {}", plateau.patience));
  require_of_validation(
      plateau.least >= 0.0 && plateau.least < 1.0,
      fmt::format("plateau.least is from 0 on and below 1, not {}", plateau.least));
}

bool surpasses(double value, double other, double by, Goal goal) {
  return goal == Goal::Min ? value < other - by : value > other + by;
}

}  // namespace

void check_validation(const Validation& v) {
  if (v.data.source() == nullptr) {
    check_unused(v);
    return;
  }
  require_of_validation(
      v.every >= 0,
      fmt::format("validation.every is a number of updates from 0 on, not {}", v.every));
  require_of_validation(
      v.watch == kLoss ||
          std::ranges::any_of(v.metrics,
                              [&](const Metric& metric) { return metric.name() == v.watch; }),
      fmt::format("validation.watch is \"loss\" or the name of one of validation.metrics, not "
                  "\"{}\"",
                  v.watch));
  require_of_validation(
      std::isfinite(v.min_delta) && v.min_delta >= 0.0,
      fmt::format("validation.min_delta is a number from 0 on, not {}", v.min_delta));
  require_of_validation(
      v.min_delta == 0.0 || v.patience || v.plateau,
      "validation.min_delta is for patience and plateau: set one of them, or leave it out");
  require_of_validation(
      !v.patience || *v.patience >= 1,
      fmt::format("validation.patience is at least 1 evaluation, not {}", v.patience.value_or(0)));
  if (v.plateau) {
    check_plateau(*v.plateau);
  }
}

double watched_value(const Validation& validation, const Evaluation& found) {
  return validation.watch == kLoss ? found.loss : found[validation.watch];
}

WatchState for_metric_of(const Validation& validation, const WatchState& state) {
  const bool is_of_it = state.metric == validation.watch && state.goal == validation.goal;
  return is_of_it ? state : WatchState{.rate_factor = state.rate_factor};
}

WatchState after(const WatchState& before,
                 double value,
                 std::int64_t steps,
                 const Validation& validation) {
  WatchState state = for_metric_of(validation, before);
  state.metric = validation.watch;
  state.goal = validation.goal;
  const bool is_number = !std::isnan(value);
  if (is_number && (!state.best || surpasses(value, *state.best, 0.0, validation.goal))) {
    state.best = value;
    state.best_step = steps;
  }
  if (is_number &&
      (!state.mark || surpasses(value, *state.mark, validation.min_delta, validation.goal))) {
    state.mark = value;
    state.waited = 0;
    state.waited_for_rate = 0;
    return state;
  }
  ++state.waited;
  ++state.waited_for_rate;
  const std::optional<Plateau>& plateau = validation.plateau;
  if (plateau && state.waited_for_rate >= plateau->patience) {
    state.rate_factor = std::max(plateau->least, state.rate_factor * plateau->factor);
    state.waited_for_rate = 0;
  }
  return state;
}

}  // namespace stagecraft
