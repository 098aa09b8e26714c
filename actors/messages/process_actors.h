/// process_actors defines the actors by which a worker process and the driver's process talk
/// (process_messages.h), and the one message that holds handles of actors.
#pragma once

#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/actors/messages/process_messages.h"
#include "stagecraft/base/error_value.h"

namespace stagecraft {

/// RankStarted answers StartRank. This is the only message that holds handles of actors: it brings
/// them from one process to the other.
struct RankStarted {
  Worker worker;
  ErrorChain error;
};

template <class V>
decltype(auto) visit_fields(RankStarted& m, V&& v) {
  return v(m.worker.plan_thread, m.worker.agent, m.error);
}

/// AdmissionActor admits worker processes, in the driver's process.
using AdmissionActor = caf::typed_actor<caf::replies_to<Hello>::with<Welcome>,
                                        caf::replies_to<Join>::with<Joined>,
                                        caf::reacts_to<PeerCut>>;

/// WorkerHostActor opens networks and starts ranks, in a worker process.
using WorkerHostActor = caf::typed_actor<caf::replies_to<OpenNetwork>::with<NetworkOpened>,
                                         caf::replies_to<StartRank>::with<RankStarted>,
                                         caf::replies_to<StartActors>::with<ActorsStarted>,
                                         caf::reacts_to<CloseNetwork>,
                                         caf::replies_to<AreYouThere>::with<Here>>;

}  // namespace stagecraft
