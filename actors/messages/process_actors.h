/// The actors by which a worker process and the driver's process talk (process_messages.h), and the
/// one message that holds handles of actors.
#pragma once

#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/actors/messages/process_messages.h"
#include "stagecraft/base/error_value.h"

namespace stagecraft {

/// Answers StartRank. This is the only message that holds handles of actors: it brings them from
/// one process to the other.
struct RankStarted {
  Worker worker;
  ErrorChain error;
};

template <class V>
decltype(auto) visit_fields(RankStarted& m, V&& v) {
  return v(m.worker.plan_thread, m.worker.agent, m.error);
}

/// In the driver's process: admits worker processes.
using AdmissionActor = caf::typed_actor<caf::replies_to<Hello>::with<Welcome>,
                                        caf::replies_to<Join>::with<Joined>,
                                        caf::reacts_to<PeerCut>>;

/// In a worker process: opens networks and starts ranks.
using WorkerHostActor = caf::typed_actor<caf::replies_to<OpenNetwork>::with<NetworkOpened>,
                                         caf::replies_to<StartRank>::with<RankStarted>,
                                         caf::reacts_to<CloseNetwork>,
                                         caf::replies_to<AreYouThere>::with<Here>>;

}  // namespace stagecraft
