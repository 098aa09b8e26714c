/// RankActors holds the remote actors of one rank, and the values that their methods and training
/// steps have made.
///
/// It takes the driver's messages (wire/message.h) on the thread that brings them, and never blocks
/// there: actors have threads of their own (hosted_actor.h), and values are futures.
/// RK-1: a value stays until it is released or the rank's actors end. Passings that were asked for
///       before still take place.
/// RK-2: a small value without tensors goes to the driver with its outcome. Any other goes only
///       when the driver wants it.
/// RK-3: an argument from another rank is waited for until it comes, the call is cancelled, or that
///       rank is lost; the driver tells.
#pragma once

#include <memory>
#include <string>

#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class RankActors {
 public:
  /// Begins to listen at its end of the network. `generation`: as the driver's MessageStream.
  /// `values`: what training steps leave on this rank.
  RankActors(std::shared_ptr<Transport> end,
             Epoch generation,
             std::shared_ptr<const ActorTypes> types,
             std::shared_ptr<StepValues> values);
  /// Ends the generation at this end. Does not wait for methods that run.
  ~RankActors();
  RankActors(const RankActors&) = delete;
  RankActors& operator=(const RankActors&) = delete;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace stagecraft
