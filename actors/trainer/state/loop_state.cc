#include "stagecraft/actors/trainer/state/loop_state.h"

#include <cmath>
#include <utility>

namespace stagecraft {

bool is_possible(const LoopState& state, std::int64_t steps) {
  const WatchState& watch = state.watch;
  return state.epoch >= 1 && state.batches >= 0 && state.evaluated >= 0 &&
         state.evaluated <= steps && watch.best_step >= 0 && watch.best_step <= steps &&
         watch.waited >= 0 && watch.waited_for_rate >= 0 && watch.waited_for_rate <= watch.waited &&
         std::isfinite(watch.rate_factor) && watch.rate_factor >= 0.0;
}

void LoopStates::put(std::int64_t steps, LoopState state) {
  states_.erase(states_.upper_bound(steps), states_.end());  // steps that failed left no state
  states_.insert_or_assign(steps, std::move(state));
  if (states_.size() > most_) {
    states_.erase(states_.begin());
  }
}

void LoopStates::replace(std::int64_t steps, const std::optional<LoopState>& state) {
  states_.clear();
  if (state) {
    put(steps, *state);
  }
}

std::optional<LoopState> LoopStates::at(std::int64_t steps) const {
  const auto found = states_.find(steps);
  return found == states_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace stagecraft
