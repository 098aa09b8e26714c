#include "stagecraft/actors/crew/ended_workers.h"

#include <algorithm>

#include "stagecraft/actors/messages/caf_types.h"

namespace stagecraft {

void EndedWorkers::watch(Rank rank, const Worker& worker) {
  std::int64_t number = 0;
  {
    const std::scoped_lock lock(known_->mutex);
    Turn& turn = known_->turns[rank.index()];
    turn.lost = false;
    number = ++turn.number;
  }
  // A functor, not a monitoring actor: nothing would keep that alive.
  const auto ended = [known = known_, rank, number] {
    {
      const std::scoped_lock lock(known->mutex);
      Turn& turn = known->turns[rank.index()];
      turn.lost = turn.lost || turn.number == number;
    }
    known->tell();
  };
  worker.plan_thread->attach_functor(ended);
  worker.agent->attach_functor(ended);
}

bool EndedWorkers::has(Rank rank) const {
  const std::scoped_lock lock(known_->mutex);
  return known_->any_of({rank});
}

void EndedWorkers::Known::tell() {
  { const std::scoped_lock lock(mutex); }  // no waiter is between its test and its wait
  changed.notify_all();
}

bool EndedWorkers::Known::any_of(const std::vector<Rank>& ranks) const {
  return std::ranges::any_of(ranks, [this](Rank rank) { return turns[rank.index()].lost; });
}

}  // namespace stagecraft
