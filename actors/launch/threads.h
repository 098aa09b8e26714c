/// ThreadLauncher launches ranks that are threads of this process, connected by the in-process
/// network.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/worker/stage_worker.h"

namespace stagecraft {

/// Shelf passes stages for other shapes to ranks of this process, between two steps.
class Shelf {
 public:
  void put(RankShape shape, Submission request);
  /// Takes a shape. Errors: Internal for a shape that was not put there.
  [[nodiscard]] RankShape take(Rank rank, Submission request);

 private:
  std::mutex mutex_;
  std::map<std::pair<Rank, Submission>, RankShape> waiting_;
};

/// Starts a worker that is a thread of this process, at its end of a network. The rank gets its
/// setup from `source`, and shapes over the data plane; or it gets `setup`, and shapes from the
/// shelf. `values`: takes what its steps leave. `left`: of a process that outlives its driver.
/// Errors: DeviceOutOfMemory if no thread can be started for it.
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   Rank rank,
                                   std::shared_ptr<Transport> end,
                                   std::shared_ptr<StepValues> values,
                                   SetupSource source,
                                   std::shared_ptr<LeftCopies> left = nullptr);
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   std::shared_ptr<Transport> end,
                                   std::shared_ptr<StepValues> values,
                                   RankSetup setup,
                                   std::shared_ptr<Shelf> shelf);

/// Returns a future that completes with "" when one of the worker's actors has ended. There is no
/// other cause, because no process has ended with it.
[[nodiscard]] Future<std::string> end_of_thread(const Worker& worker);

class ThreadLauncher final : public Launcher {
 public:
  [[nodiscard]] ActorHost& host() const override { return ActorHost::of_this_process(); }
  void require_fit(const std::vector<RankSetup>&, LastRank) const override {}
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks, LastRank last) override;
  [[nodiscard]] WorkerPlace place(Rank rank) const override;
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank rank) override;

 private:
  const std::shared_ptr<StepValues> values_ = std::make_shared<StepValues>();
};

}  // namespace stagecraft
