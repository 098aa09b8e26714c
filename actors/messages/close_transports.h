/// The first part of the end of ranks: nobody of them waits for a tensor any more.
#pragma once

#include <chrono>
#include <vector>

#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

class ActorHost;  // actor_host.h

/// Makes the agents of these workers close their transports. Waits
/// for their answers up to `limit`, a time of `clock`: an actor that is told to quit before may
/// handle that first. Workers without an agent are passed over.
void close_transports(ActorHost& host,
                      const std::vector<Worker>& workers,
                      const Error& why,
                      std::chrono::milliseconds limit,
                      const Clock& clock);

}  // namespace stagecraft
