/// played_rank spawns the two actors of a rank that answer every message at once, without plan or
/// tensors.
#pragma once

#include "stagecraft/actors/messages/caf_types.h"

namespace stagecraft::bench {

inline PlanActor::behavior_type played_plan_thread(PlanActor::pointer, Rank rank) {
  return {[=](const LoadPlan&) { return Ready{.rank = rank}; },
          [=](const StepOrder& m) {
            return StepReport{.rank = rank, .submission = m.submission, .committed = true};
          },
          [=](const SendState&) { return StateListing{.rank = rank}; },
          [=](const TakeState&) { return StateTaken{.rank = rank}; },
          [=](const LoadShape&) { return ShapeLoaded{.rank = rank}; }};
}

inline AgentActor::behavior_type played_agent(AgentActor::pointer, Rank rank) {
  return {[](const Abort&) {},
          [=](const Status&) { return StatusReply{.rank = rank}; },
          [=](const EndWorker&) { return WorkerEnded{.rank = rank}; }};
}

}  // namespace stagecraft::bench
