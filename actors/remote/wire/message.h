/// message.h defines the messages between the driver and the actors of a rank.
///
///   driver -> rank   MakeActor, CallMethod   each answered once by an Outcome
///                    WantValue               answered by an Outcome with the value
///                    TakeStepValues          an Outcome for each of its values
///                    ForwardValue, ReleaseValues, CancelCall, RankLost, EndActor
///   both             StreamNotice
///
/// They go over the data plane, because calls carry tensors and the data plane is the quicker way
/// (message_stream.h). Order is that of each stream.
/// RM-1: a value has the number of the call that makes it, and belongs to the rank of that call. It
///       goes from rank to rank as a Delivered, under a tag that this passing alone has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/actors/remote/wire/payload.h"
#include "stagecraft/base/error_value.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

namespace wire {

template <>
inline constexpr Errc kLast<Errc> = Errc::Internal;

}  // namespace wire

using ActorId = StrongId<struct ActorName, std::int64_t>;
using CallId = StrongId<struct CallName, std::int64_t>;          ///< also of the value
using DeliveryId = StrongId<struct DeliveryName, std::int64_t>;  ///< one passing of a value

/// Is a value that comes from another rank.
struct DeliveredArgument {
  Rank from;  ///< or kDriver
  DeliveryId delivery;
};

/// Is a value that belongs to the rank of the call.
struct KeptArgument {
  CallId value;
};

using Argument = std::variant<Payload, KeptArgument, DeliveredArgument>;

struct MakeActor {
  CallId call;
  ActorId actor;
  std::string type;
  std::vector<std::string> methods;  ///< as the driver's build lists them
  std::int32_t concurrency = 1;
  std::vector<Argument> arguments;
};

struct CallMethod {
  CallId call;
  ActorId actor;
  std::uint32_t method = 0;  ///< its position in MakeActor::methods
  std::vector<Argument> arguments;
};

struct WantValue {
  CallId value;
};

/// TakeStepValues takes the values that a training step leaves on the rank (step_values.h). Each
/// gets a number of its own, from `first` on.
struct TakeStepValues {
  CallId first;
  PlanId plan;
  Submission submission;
  std::int32_t task = -1;  ///< as StepValues::Place
  std::vector<StepValueName> values;
};

/// ForwardValue sends a value to `to`, when there is one.
struct ForwardValue {
  CallId value;
  Rank to;
  Epoch generation;  ///< of the receiver's side
  DeliveryId delivery;
};

struct ReleaseValues {
  std::vector<CallId> values;
};

/// CancelCall ends a call with `why`; empty: with Errc::Cancelled. A method that runs goes on,
/// without a reader.
struct CancelCall {
  CallId call;
  ErrorChain why = {};
};

/// RankLost ends all waits for values of a rank, and those of calls that come later.
struct RankLost {
  Rank rank;
  DeliveryId before;  ///< passings with lower numbers do not come
  ErrorChain why;
};

struct EndActor {
  ActorId actor;
};

/// Delivered is a value on its way to the rank of a call, or what became of it.
struct Delivered {
  ErrorChain error;
  Payload value;
};

/// StreamNotice takes the place of a message that could not be sent; or, with an error, tells that
/// its sender takes no more messages.
struct StreamNotice {
  ErrorChain why;
};

/// Outcome has neither error nor value if the value stays with its rank.
struct Outcome {
  CallId call;
  ErrorChain error;
  std::optional<Payload> value;
};

template <class V>
decltype(auto) visit_fields(DeliveredArgument& m, V&& v) {
  return v(m.from, m.delivery);
}
template <class V>
decltype(auto) visit_fields(KeptArgument& m, V&& v) {
  return v(m.value);
}
template <class V>
decltype(auto) visit_fields(MakeActor& m, V&& v) {
  return v(m.call, m.actor, m.type, m.methods, m.concurrency, m.arguments);
}
template <class V>
decltype(auto) visit_fields(CallMethod& m, V&& v) {
  return v(m.call, m.actor, m.method, m.arguments);
}
template <class V>
decltype(auto) visit_fields(WantValue& m, V&& v) {
  return v(m.value);
}
template <class V>
decltype(auto) visit_fields(TakeStepValues& m, V&& v) {
  return v(m.first, m.plan, m.submission, m.task, m.values);
}
template <class V>
decltype(auto) visit_fields(ForwardValue& m, V&& v) {
  return v(m.value, m.to, m.generation, m.delivery);
}
template <class V>
decltype(auto) visit_fields(ReleaseValues& m, V&& v) {
  return v(m.values);
}
template <class V>
decltype(auto) visit_fields(CancelCall& m, V&& v) {
  return v(m.call, m.why);
}
template <class V>
decltype(auto) visit_fields(RankLost& m, V&& v) {
  return v(m.rank, m.before, m.why);
}
template <class V>
decltype(auto) visit_fields(EndActor& m, V&& v) {
  return v(m.actor);
}
template <class V>
decltype(auto) visit_fields(Delivered& m, V&& v) {
  return v(m.error, m.value);
}
template <class V>
decltype(auto) visit_fields(StreamNotice& m, V&& v) {
  return v(m.why);
}
template <class V>
decltype(auto) visit_fields(Outcome& m, V&& v) {
  return v(m.call, m.error, m.value);
}

using RemoteMessage = std::variant<MakeActor,
                                   CallMethod,
                                   WantValue,
                                   ForwardValue,
                                   ReleaseValues,
                                   CancelCall,
                                   RankLost,
                                   EndActor,
                                   StreamNotice,
                                   Outcome,
                                   TakeStepValues>;

}  // namespace stagecraft
