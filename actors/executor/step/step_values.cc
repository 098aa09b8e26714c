#include "stagecraft/actors/executor/step/step_values.h"

#include <iterator>
#include <optional>
#include <utility>
#include <vector>

namespace stagecraft {

void StepValues::put(const Place& place, MadeValues values) {
  std::vector<Promise<MadeValues>> failed;  // these, and the taker's, complete without the lock
  std::optional<Promise<MadeValues>> awaited;
  {
    const std::scoped_lock lock(mutex_);
    auto one = waiting_.lower_bound({place.plan, place.rank, Submission(0)});
    const Place first_of_step{place.plan, place.rank, place.submission};
    while (one != waiting_.end() && one->first < first_of_step) {
      const auto next = std::next(one);
      const bool is_old = place.submission.value - one->first.submission.value > kMostWaiting;
      if (is_old || !one->second.is_put || one->first.task >= 0) {
        failed.push_back(std::move(one->second.values));
        waiting_.erase(one);
      }
      one = next;
    }
    const auto [here, is_first] = waiting_.try_emplace(place);
    if (is_first) {
      here->second.is_put = true;
      here->second.values.set_value(std::move(values));  // nobody has its future yet
    } else {
      awaited = std::move(here->second.values);
      waiting_.erase(here);
    }
  }
  for (Promise<MadeValues>& promise : failed) {
    promise.cancel();
  }
  if (awaited) {
    awaited->set_value(std::move(values));
  }
}

void StepValues::end(PlanId plan, Rank rank) {
  std::vector<Promise<MadeValues>> dropped;
  {
    const std::scoped_lock lock(mutex_);
    ended_.emplace(plan, rank);
    auto one = waiting_.lower_bound({plan, rank, Submission(0)});
    while (one != waiting_.end() && one->first.plan == plan && one->first.rank == rank) {
      dropped.push_back(std::move(one->second.values));
      one = waiting_.erase(one);
    }
  }
  for (Promise<MadeValues>& promise : dropped) {
    promise.cancel();
  }
}

Future<MadeValues> StepValues::take(const Place& place) {
  const std::scoped_lock lock(mutex_);
  if (ended_.contains({place.plan, place.rank})) {
    Promise<MadeValues> none;
    none.cancel();
    return none.future();
  }
  const auto [here, is_new] = waiting_.try_emplace(place);
  Future<MadeValues> made = here->second.values.future();
  if (here->second.is_put) {
    waiting_.erase(here);
  }
  return made;
}

}  // namespace stagecraft
