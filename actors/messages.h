/// Messages: all that driver, stage workers and agents say to each other.
///
///   crew    -> plan thread   LoadPlan                         answered by Ready
///   crew    -> plan thread   LoadVariant                      answered by VariantLoaded
///   driver  -> plan thread   StepOrder                        StepReport comes back
///   crew    -> plan thread   SendState, TakeState             answered by StateListing, StateTaken
///   driver  -> agent         Abort, Status                    Status is answered by StatusReply
///   crew    -> agent         Status, EndWorker                answered by StatusReply, WorkerEnded
///   crew    -> driver        Submit
///   driver  -> itself        TimelineHere
///
/// MS-1: a message is metadata only: numbers (losses among them), text and lists of them. No
///       tensor, no pointer, no handle; tensors go over the Transport, a plan's under its edges,
///       state and timelines under the tags of data_tags.h.
/// MS-2: each message has one list of its fields, `visit_fields`: CAF writes and reads by it, and
///       the test of MS-1 looks through it.
/// MS-3: an answer carries its failure as a value; nothing throws across a message.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "stagecraft/actors/executor/step_record.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error_value.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Build what the plan needs and be ready for steps. A rank of another process gets its setup over
/// the data plane.
struct LoadPlan {
  Rank rank;
  PlanId plan;
  std::int64_t patience_ms = 0;  ///< longest it may wait for its setup
};

struct Ready {
  Rank rank;
  ClockReading clock;  ///< halfway through loading the plan
  ErrorChain error;
};

/// Take on your stages as they are for another shape or evaluation. A rank of another process gets
/// them over the data plane, under the tags of `request`.
struct LoadVariant {
  Rank rank;
  Submission request;
  std::int64_t patience_ms = 0;  ///< longest it may wait for them
};

struct VariantLoaded {
  Rank rank;
  ErrorChain error;
};

/// Give up every epoch of the plan before this one.
struct Abort {
  PlanId plan;
  Epoch epoch;
  ErrorChain reason;
};

struct Status {};

/// Close your end of the data plane: the trainer is going. What is under way fails with `reason`.
struct EndWorker {
  ErrorChain reason;
};

struct WorkerEnded {
  Rank rank;
};

struct StatusReply {
  Rank rank;
  std::int32_t program = kTraining;  ///< in whose list `instruction` is
  std::int32_t instruction = -1;     ///< position in the rank's plan; -1 between steps
  double seconds = 0.0;              ///< for so long
  std::vector<Rank> waiting_for;     ///< whom it waits for; empty: for nobody
};

/// Say what state this rank keeps and, if asked to, send it to the driver under the tags of
/// `request`.
struct SendState {
  Submission request;
  bool tensors = true;
  /// Instead, send `to` the copy of the rank before this one after so many updates (mirror.h),
  /// packed.
  std::int64_t kept = -1;
  Rank to = kDriver;
  /// Instead, the gradients of the last update (TrainerOptions::keep_gradients), by the names of
  /// their parameters.
  bool gradients = false;
  Epoch epoch{};  ///< of a copy that goes to another rank
};

/// A rank's state: names, shapes and types in the order in which the tensors are sent.
struct StateListing {
  Rank rank;
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::string> types;
  /// The states of which it has copies, after so many updates: of itself, of the rank before it.
  std::vector<std::int64_t> own, kept;
  ErrorChain error;
};

/// Replace the whole state by the tensors sent under the tags of `request`, or by none of them.
struct TakeState {
  Submission request;
  std::vector<std::string> names;  ///< as in the rank's StateListing, when the driver sends it
  std::int64_t updates = 0;        ///< the state's
  /// Its keeper sends a packed copy instead; or it is the rank itself: it has one.
  Rank from = kDriver;
  Epoch epoch{};  ///< of its copy
};

struct StateTaken {
  Rank rank;
  ErrorChain error;
};

/// A step is in the ledger under this number.
struct Submit {
  Submission submission;
};

/// One of this step's timelines has arrived, or will not.
struct TimelineHere {
  Submission submission;
};

template <class V>
decltype(auto) visit_fields(LoadPlan& m, V&& v) {
  return v(m.rank, m.plan, m.patience_ms);
}
template <class V>
decltype(auto) visit_fields(Ready& m, V&& v) {
  return v(m.rank, m.clock, m.error);
}
template <class V>
decltype(auto) visit_fields(LoadVariant& m, V&& v) {
  return v(m.rank, m.request, m.patience_ms);
}
template <class V>
decltype(auto) visit_fields(VariantLoaded& m, V&& v) {
  return v(m.rank, m.error);
}
template <class V>
decltype(auto) visit_fields(Abort& m, V&& v) {
  return v(m.plan, m.epoch, m.reason);
}
template <class V>
decltype(auto) visit_fields(Status&, V&& v) {
  return v();
}
template <class V>
decltype(auto) visit_fields(EndWorker& m, V&& v) {
  return v(m.reason);
}
template <class V>
decltype(auto) visit_fields(WorkerEnded& m, V&& v) {
  return v(m.rank);
}
template <class V>
decltype(auto) visit_fields(StatusReply& m, V&& v) {
  return v(m.rank, m.program, m.instruction, m.seconds, m.waiting_for);
}
template <class V>
decltype(auto) visit_fields(SendState& m, V&& v) {
  return v(m.request, m.tensors, m.kept, m.to, m.gradients, m.epoch);
}
template <class V>
decltype(auto) visit_fields(StateListing& m, V&& v) {
  return v(m.rank, m.names, m.shapes, m.types, m.own, m.kept, m.error);
}
template <class V>
decltype(auto) visit_fields(TakeState& m, V&& v) {
  return v(m.request, m.names, m.updates, m.from, m.epoch);
}
template <class V>
decltype(auto) visit_fields(StateTaken& m, V&& v) {
  return v(m.rank, m.error);
}
template <class V>
decltype(auto) visit_fields(Submit& m, V&& v) {
  return v(m.submission);
}
template <class V>
decltype(auto) visit_fields(TimelineHere& m, V&& v) {
  return v(m.submission);
}

/// Every message there is: registered from this list, and looked through by the test of MS-1.
using MessageTypes = std::tuple<LoadPlan,
                                Ready,
                                StepOrder,
                                StepReport,
                                Abort,
                                Status,
                                EndWorker,
                                WorkerEnded,
                                StatusReply,
                                SendState,
                                StateListing,
                                TakeState,
                                StateTaken,
                                Submit,
                                TimelineHere,
                                LoadVariant,
                                VariantLoaded>;

/// The name under which a message type is known to its peers: kept when the list above changes.
template <class Message>
inline constexpr std::string_view kWireName{};
template <>
inline constexpr std::string_view kWireName<LoadPlan> = "stagecraft.LoadPlan";
template <>
inline constexpr std::string_view kWireName<Ready> = "stagecraft.Ready";
template <>
inline constexpr std::string_view kWireName<StepOrder> = "stagecraft.StepOrder";
template <>
inline constexpr std::string_view kWireName<StepReport> = "stagecraft.StepReport";
template <>
inline constexpr std::string_view kWireName<Abort> = "stagecraft.Abort";
template <>
inline constexpr std::string_view kWireName<Status> = "stagecraft.Status";
template <>
inline constexpr std::string_view kWireName<EndWorker> = "stagecraft.EndWorker";
template <>
inline constexpr std::string_view kWireName<WorkerEnded> = "stagecraft.WorkerEnded";
template <>
inline constexpr std::string_view kWireName<StatusReply> = "stagecraft.StatusReply";
template <>
inline constexpr std::string_view kWireName<SendState> = "stagecraft.SendState";
template <>
inline constexpr std::string_view kWireName<StateListing> = "stagecraft.StateListing";
template <>
inline constexpr std::string_view kWireName<TakeState> = "stagecraft.TakeState";
template <>
inline constexpr std::string_view kWireName<StateTaken> = "stagecraft.StateTaken";
template <>
inline constexpr std::string_view kWireName<Submit> = "stagecraft.Submit";
template <>
inline constexpr std::string_view kWireName<TimelineHere> = "stagecraft.TimelineHere";
template <>
inline constexpr std::string_view kWireName<LoadVariant> = "stagecraft.LoadVariant";
template <>
inline constexpr std::string_view kWireName<VariantLoaded> = "stagecraft.VariantLoaded";

}  // namespace stagecraft
