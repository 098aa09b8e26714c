#include "stagecraft/actors/messages/close_transports.h"

#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

void close_transports(ActorHost& host,
                      const std::vector<Worker>& workers,
                      const Error& why,
                      std::chrono::milliseconds limit,
                      const Clock& clock) {
  const Deadline deadline = clock.now() + limit;
  std::vector<Future<WorkerEnded>> told;
  for (const Worker& worker : workers) {
    if (worker.agent) {
      told.push_back(ask<WorkerEnded>(
          host, worker.agent, "an agent", limit, EndWorker{.reason = to_chain(why)}));
    }
  }
  for (const Future<WorkerEnded>& answer : told) {
    (void)answer.wait_until(deadline, clock);
  }
}

}  // namespace stagecraft
