/// Makes actors that stand for worker processes, for tests of fleets.
#pragma once

#include "stagecraft/actors/launch/ways/joining.h"

namespace stagecraft::testing {

/// Returns an actor that answers what a fleet asks of a worker process.
inline WorkerHostActor answering_host() {
  return ActorHost::of_this_process().system().spawn(
      [](WorkerHostActor::pointer) -> WorkerHostActor::behavior_type {
        return {[](const OpenNetwork&) { return NetworkOpened{}; },
                [](const StartRank&) { return RankStarted{}; },
                [](const StartActors&) { return ActorsStarted{}; },
                [](const CloseNetwork&) {},
                [](const AreYouThere&) { return Here{}; }};
      });
}

}  // namespace stagecraft::testing
