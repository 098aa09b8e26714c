#include "stagecraft/actors/trainer/validation_watch.h"

#include <utility>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

void begin_to_watch(LoopState& state, const Validation& validation) {
  if (validation.data.source() == nullptr) {
    return;
  }
  WatchState watch = for_metric_of(validation, state.watch);
  if (watch == state.watch) {
    return;
  }
  log(Level::Warning,
      "the checkpoint's best value is of another metric or goal: the search for the best begins "
      "anew",
      {{"checkpoint", state.watch.metric}, {"watch", validation.watch}});
  state.watch = std::move(watch);
  state.evaluated = 0;
}

ValidationWatch::ValidationWatch(Trainer& trainer, const Validation& validation, LoopState& state)
    : trainer_(trainer), validation_(validation), state_(state), file_(validation.best_path) {}

bool ValidationWatch::is_due(std::int64_t steps) const {
  const std::int64_t every = validation_.every;
  return evaluates() && every > 0 && steps > 0 && steps % every == 0;
}

std::optional<FitEvaluation> ValidationWatch::evaluate(std::int64_t steps) {
  if (!evaluates() || state_.evaluated == steps) {
    return std::nullopt;
  }
  FitEvaluation found{trainer_.evaluate(*validation_.data.source(), validation_.metrics)};
  found.step = steps;
  found.epoch = state_.epoch;
  found.watched = watched_value(validation_, found);
  const LoopState before = state_;
  const WatchState watch = after(state_.watch, found.watched, steps, validation_);
  found.is_best = watch.best != state_.watch.best;
  found.improved = watch.waited == 0;
  found.rate_factor = watch.rate_factor;
  state_.watch = watch;
  state_.evaluated = steps;
  trainer_.set_loop_state(steps, state_);  // before save: the file has it
  if (found.is_best) {
    save_best(steps, before);
  }
  return found;
}

void ValidationWatch::save_best(std::int64_t steps, const LoopState& before) {
  try {
    file_.save(trainer_);
  } catch (...) {
    state_ = before;
    trainer_.set_loop_state(steps, state_);
    throw;
  }
}

bool ValidationWatch::is_out_of_patience() const {
  return validation_.patience && state_.watch.waited >= *validation_.patience;
}

std::optional<FitBest> ValidationWatch::best() const {
  const WatchState& watch = state_.watch;
  return watch.best
             ? std::optional(FitBest{
                   .value = *watch.best, .step = watch.best_step, .path = file_.path_if_of(watch)})
             : std::nullopt;
}

}  // namespace stagecraft
