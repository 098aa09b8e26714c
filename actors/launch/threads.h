/// ThreadLauncher: ranks that are threads of this process, with the in-process network between
/// them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/stage_worker.h"

namespace stagecraft {

/// What ranks of this process are handed between two steps: their stages for other shapes.
class Shelf {
 public:
  void put(RankVariant variant, Submission request);
  /// Errors: Internal for what was not put there.
  [[nodiscard]] RankVariant take(Rank rank, Submission request);

 private:
  std::mutex mutex_;
  std::map<std::pair<Rank, Submission>, RankVariant> waiting_;
};

/// Starts a worker that is a thread of this process, at its end of a network. What its rank is to
/// know comes from `source` and over the data plane, or is `setup` and on the shelf.
/// Errors: DeviceOutOfMemory when no thread can be started for it.
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   Rank rank,
                                   std::shared_ptr<Transport> end,
                                   SetupSource source);
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   std::shared_ptr<Transport> end,
                                   RankSetup setup,
                                   std::shared_ptr<Shelf> shelf);

class ThreadLauncher final : public Launcher {
 public:
  [[nodiscard]] ActorHost& host() const override { return ActorHost::of_this_process(); }
  void require_fit(const std::vector<RankSetup>&) const override {}
  [[nodiscard]] std::unique_ptr<Binding> bind(int ranks) override;
  [[nodiscard]] WorkerPlace place(Rank rank) const override;
  [[nodiscard]] PortCounts traffic() const override { return {}; }
  void replace(Rank rank) override;
};

}  // namespace stagecraft
