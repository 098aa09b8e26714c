#include "stagecraft/actors/worker_losses.h"

#include <algorithm>

#include "stagecraft/actors/caf_types.h"

namespace stagecraft {

void WorkerLosses::watch(ActorHost& host, Rank rank, const Worker& worker) {
  std::int64_t number = 0;
  {
    const std::scoped_lock lock(known_->mutex);
    Turn& turn = known_->turns[rank.index()];
    turn.lost = false;
    number = ++turn.number;
  }
  host.system().spawn(
      [known = known_, rank, number, worker](caf::event_based_actor* self) -> caf::behavior {
        self->set_down_handler([self, known, rank, number](const caf::down_msg&) {
          {
            const std::scoped_lock lock(known->mutex);
            Turn& turn = known->turns[rank.index()];
            turn.lost = turn.lost || turn.number == number;
          }
          known->tell();
          self->quit();
        });
        self->monitor(worker.plan_thread);
        self->monitor(worker.agent);
        return {[](caf::tick_atom) {}};  // nobody sends it: an actor without a behavior ends
      });
}

bool WorkerLosses::has(Rank rank) const {
  const std::scoped_lock lock(known_->mutex);
  return known_->any_of({rank});
}

void WorkerLosses::Known::tell() {
  { const std::scoped_lock lock(mutex); }  // nobody is between looking and waiting
  changed.notify_all();
}

bool WorkerLosses::Known::any_of(const std::vector<Rank>& ranks) const {
  return std::ranges::any_of(ranks, [this](Rank rank) { return turns[rank.index()].lost; });
}

}  // namespace stagecraft
