/// caf_types defines our use of the C++ Actor Framework (CAF) 0.17: how CAF sees our messages, and
/// the types of a crew's actors. actor_host.h has the system in which they live.
///
/// This is our only header that includes CAF. The actor shells (crew, driver, stage worker,
/// launchers), which use CAF too, include it. No header of a user's program does.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include <caf/all.hpp>

#include "stagecraft/actors/messages/messages.h"

namespace stagecraft {

// ---- messages -------------------------------------------------------------------------------

template <class Inspector, class Name, class Int>
typename Inspector::result_type inspect(Inspector& f, StrongId<Name, Int>& id) {
  return f(id.value);
}

/// SentNumber is a floating-point field as it travels: by its bits. CAF packs such numbers by
/// arithmetic that does not end for infinity, and that changes what is not a number.
struct SentNumber {
  double& value;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SentNumber& number) {
  auto bits = std::bit_cast<std::uint64_t>(number.value);
  if constexpr (Inspector::reads_state) {
    return f(bits);
  } else {
    auto result = f(bits);
    number.value = std::bit_cast<double>(bits);
    return result;
  }
}

/// SentNumbers is a list of them.
struct SentNumbers {
  std::vector<double>& values;
};

template <class Inspector>
typename Inspector::result_type inspect(Inspector& f, SentNumbers& numbers) {
  std::vector<std::uint64_t> bits;
  for (const double value : numbers.values) {
    bits.push_back(std::bit_cast<std::uint64_t>(value));
  }
  if constexpr (Inspector::reads_state) {
    return f(bits);
  } else {
    auto result = f(bits);
    numbers.values.clear();
    for (const std::uint64_t value : bits) {
      numbers.values.push_back(std::bit_cast<double>(value));
    }
    return result;
  }
}

template <class Field>
Field& as_sent(Field& field) {
  return field;
}
inline SentNumber as_sent(double& field) {
  return {field};
}
inline SentNumbers as_sent(std::vector<double>& field) {
  return {field};
}

/// Covers every message that has a list of fields (MS-2).
template <class Inspector, class Message>
auto inspect(Inspector& f, Message& m) -> decltype(visit_fields(m, f)) {
  return visit_fields(m, [&f](auto&... fields) {
    // The wrappers become lvalues here, as CAF wants them.
    return [&f](auto&&... sent) { return f(sent...); }(as_sent(fields)...);
  });
}

// ---- actors ---------------------------------------------------------------------------------

/// PlanActor is detached: it owns a thread, and the executor lives on that thread.
using PlanActor = caf::typed_actor<caf::replies_to<LoadPlan>::with<Ready>,
                                   caf::replies_to<StepOrder>::with<StepReport>,
                                   caf::replies_to<SendState>::with<StateListing>,
                                   caf::replies_to<TakeState>::with<StateTaken>,
                                   caf::replies_to<LoadShape>::with<ShapeLoaded>>;

/// AgentActor is scheduled: it answers while the plan thread runs a step.
using AgentActor = caf::typed_actor<caf::reacts_to<Abort>,
                                    caf::replies_to<Status>::with<StatusReply>,
                                    caf::replies_to<EndWorker>::with<WorkerEnded>>;

/// Worker is one rank for its crew and its driver. Both actors end when they are told to quit. The
/// agent closes the rank's transport when EndWorker asks it to.
struct Worker {
  PlanActor plan_thread;
  AgentActor agent;
};

using DriverActor = caf::typed_actor<caf::reacts_to<Submit>,
                                     caf::reacts_to<StepReport>,
                                     caf::reacts_to<TimelineHere>,
                                     caf::reacts_to<CauseOfEnd>,
                                     caf::reacts_to<caf::tick_atom>>;

}  // namespace stagecraft
