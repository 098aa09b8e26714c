#include "stagecraft/actors/crew/crew_workers.h"

#include "stagecraft/actors/driver/lost_workers.h"

namespace stagecraft {

CrewWorkers::CrewWorkers(ActorHost& host,
                         std::shared_ptr<Binding> binding,
                         int ranks,
                         std::chrono::milliseconds patience,
                         std::shared_ptr<const Clock> clock)
    : host_(host),
      binding_(std::move(binding)),
      patience_(patience),
      clock_(std::move(clock)),
      workers_(static_cast<std::size_t>(ranks)),
      causes_(static_cast<std::size_t>(ranks)),
      ended_(ranks, clock_) {}

std::vector<Rank> CrewWorkers::all_ranks() const {
  std::vector<Rank> all;
  for (int r = 0; r < ranks(); ++r) {
    all.emplace_back(r);
  }
  return all;
}

void CrewWorkers::launch(RankSetup setup) {
  const Rank rank = setup.rank();
  Worker& worker = workers_[rank.index()];
  if (worker.agent) {
    caf::anon_send_exit(worker.agent, caf::exit_reason::user_shutdown);
    caf::anon_send_exit(worker.plan_thread, caf::exit_reason::user_shutdown);
  }
  worker = binding_->launch(std::move(setup));
  causes_[rank.index()] = binding_->cause_of_end(rank);
  ended_.watch(rank, worker);
}

Error CrewWorkers::loss_of(Rank rank) const {
  const Future<std::string>& cause = causes_[rank.index()];
  const bool is_known = [&] {
    const process_end::Elsewhere waiting;
    return cause.wait_until(clock_->now() + kCauseLimit, *clock_);
  }();
  return lost_worker(rank, is_known ? cause.get() : "", advice_);
}

}  // namespace stagecraft
