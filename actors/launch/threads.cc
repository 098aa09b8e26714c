#include "stagecraft/actors/launch/threads.h"

#include <utility>

#include "stagecraft/actors/stage_worker.h"
#include "stagecraft/futures/transport/inproc.h"

namespace stagecraft {

std::unique_ptr<const Network> ThreadLauncher::make_network(int ranks) const {
  return std::make_unique<const InprocNetwork>(ranks);
}

Worker ThreadLauncher::launch(const Network& network, RankSetup setup) const {
  ActorHost& host = ActorHost::of_this_process();
  const auto desk = std::make_shared<WorkerDesk>();
  desk->rank = setup.rank;
  desk->transport = network.endpoint(setup.rank);
  // The plan thread first: it is what there may be no means for.
  PlanActor plan_thread = spawn_plan_thread(host, desk, std::move(setup));
  return {.plan_thread = std::move(plan_thread), .agent = spawn_agent(host, desk)};
}

}  // namespace stagecraft
