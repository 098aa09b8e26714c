/// ThreadLauncher: ranks that are threads of this process, with the in-process network between
/// them.
#pragma once

#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/stage_worker.h"

namespace stagecraft {

/// Starts a worker that is a thread of this process, at its end of a network. What its rank is to
/// know comes from `source`, or is `setup`.
/// Errors: DeviceOutOfMemory when no thread can be started for it.
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   Rank rank,
                                   std::shared_ptr<Transport> end,
                                   SetupSource source);
[[nodiscard]] Worker launch_thread(ActorHost& host,
                                   std::shared_ptr<Transport> end,
                                   RankSetup setup);

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
