#include "stagecraft/actors/trainer/state/loop_state.h"

#include <cmath>
#include <cstddef>
#include <utility>

namespace stagecraft {
namespace {

/// The state of LibTorch's generator has 5056 bytes.
constexpr std::size_t kLongestText = std::size_t{1} << 16U;

bool is_number_or_none(const std::optional<double>& value) {
  return !value || !std::isnan(*value);
}

/// An evaluation follows at least one update, and at most one follows the same updates. A factor
/// falls from 1 on; after very many plateaus it is 0.
bool is_possible(const WatchState& watch, std::int64_t evaluated) {
  return watch.metric.size() <= kLongestText && is_number_or_none(watch.best) &&
         is_number_or_none(watch.mark) && watch.best_step >= 0 && watch.best_step <= evaluated &&
         watch.waited >= 0 && watch.waited <= evaluated && watch.waited_for_rate >= 0 &&
         watch.waited_for_rate <= watch.waited && watch.rate_factor >= 0.0 &&
         watch.rate_factor <= 1.0;
}

}  // namespace

bool is_possible(const LoopState& state, std::int64_t steps) {
  return state.epoch >= 1 && state.batches >= 0 && state.random.size() <= kLongestText &&
         state.evaluated >= 0 && state.evaluated <= steps &&
         is_possible(state.watch, state.evaluated);
}

void LoopStates::put(std::int64_t steps, LoopState state) {
  const std::scoped_lock lock(mutex_);
  states_.erase(states_.upper_bound(steps), states_.end());  // steps that failed left no state
  states_.insert_or_assign(steps, std::move(state));
  if (states_.size() > most_) {
    states_.erase(states_.begin());
  }
}

void LoopStates::replace(std::int64_t steps, const std::optional<LoopState>& state) {
  const std::scoped_lock lock(mutex_);
  states_.clear();
  if (state) {
    states_.emplace(steps, *state);
  }
}

std::optional<LoopState> LoopStates::at(std::int64_t steps) const {
  const std::scoped_lock lock(mutex_);
  const auto found = states_.find(steps);
  return found == states_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace stagecraft
