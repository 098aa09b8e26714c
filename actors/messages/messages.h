/// messages.h defines all messages between driver, stage workers and agents.
///
///   crew    -> plan thread   LoadPlan                         answered by Ready
///   crew    -> plan thread   LoadShape                      answered by ShapeLoaded
///   driver  -> plan thread   StepOrder                        answered by StepReport
///   crew    -> plan thread   SendState, TakeState             answered by StateListing, StateTaken
///   driver  -> agent         Abort, Status                    Status is answered by StatusReply
///   crew    -> agent         Status, EndWorker                answered by StatusReply, WorkerEnded
///   crew    -> driver        Submit
///   driver  -> itself        TimelineHere, CauseOfEnd
///
/// MS-1: a message is metadata only: numbers (also losses), text and lists of them. It holds no
///       tensor, pointer or handle. Tensors go over the Transport: a plan's under its edges, state
///       and timelines under the tags of data_tags.h.
/// MS-2: each message has one list of its fields, `visit_fields`. CAF writes and reads by it, and
///       the test of MS-1 looks through it.
/// MS-3: an answer carries its failure as a value; nothing throws across a message.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/base/clock_reading.h"
#include "stagecraft/base/error_value.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// LoadPlan asks a rank to build the parts that the plan needs and to get ready for steps. A rank
/// of another process gets its setup over the data plane.
struct LoadPlan {
  Rank rank;
  PlanId plan;
  std::int64_t patience_ms = 0;  ///< longest wait for its setup
  /// If true, the trainer has other ranks already, and copies that a trainer before has left in
  /// this process are of no use (MR-4).
  bool joins = false;
};

struct Ready {
  Rank rank;
  ClockReading clock;  ///< halfway through loading the plan
  ErrorChain error;
};

/// LoadShape asks a rank to take on its stages for another shape or evaluation. A rank of another
/// process gets them over the data plane, under the tags of `request`.
struct LoadShape {
  Rank rank;
  Submission request;
  std::int64_t patience_ms = 0;  ///< longest wait for them
};

struct ShapeLoaded {
  Rank rank;
  ErrorChain error;
};

/// Abort asks a rank to give up every epoch of the plan before this one.
struct Abort {
  PlanId plan;
  Epoch epoch;
  ErrorChain reason;
};

/// Status asks for a StatusReply. `ranks`: how many ranks its routes are about.
struct Status {
  std::int32_t ranks = 0;
};

/// EndWorker asks an agent to close its end of the data plane, because the trainer ends. Work in
/// progress fails with `reason`.
struct EndWorker {
  ErrorChain reason;
};

struct WorkerEnded {
  Rank rank;
};

struct StatusReply {
  Rank rank;
  std::int32_t program = kTraining;  ///< the program of which `instruction` is a part
  std::int32_t instruction = -1;     ///< position in the rank's plan; -1 between steps
  double seconds = 0.0;              ///< time in it so far
  std::vector<Rank> waiting_for;     ///< ranks that it waits for
  std::vector<std::int32_t> routes;  ///< by rank: the Route of its tensors to that rank
};

/// SendState asks a rank to list its state and, if `tensors` is set, to send it to the driver under
/// the tags of `request`.
struct SendState {
  Submission request;
  bool tensors = true;
  /// Positions in the whole list: these alone are listed and sent, in this order. Empty: all.
  std::vector<std::int32_t> only = {};
  /// If not -1, the message asks instead to send `to` the copy of the state of the rank before this
  /// one after so many updates (mirror.h), packed.
  std::int64_t copy_of = -1;
  Rank to = kDriver;
  /// If true, the message asks instead for the gradients of the last update
  /// (TrainerOptions::keep_gradients), by the names of their parameters.
  bool gradients = false;
  Epoch epoch{};  ///< of a copy that goes to another rank
};

/// The count of updates of a rank whose weights have not come, or are undefined since a failure.
inline constexpr std::int64_t kNoWeights = -1;

/// StateListing is the state of a rank: names, shapes and types in the order in which the tensors
/// are sent.
struct StateListing {
  Rank rank;
  std::vector<std::string> names;
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::string> types;
  /// The update counts of the states of which it has copies: of itself, and of the rank before it.
  std::vector<std::int64_t> own, kept;
  /// The facts of each of `own`, if these copies are of the driver before (MR-4); else empty.
  std::vector<std::string> facts;
  std::int64_t updates = kNoWeights;  ///< of its living state
  ErrorChain error;
};

/// TakeState asks a rank to replace its whole state by the tensors sent under the tags of
/// `request`, or by none.
struct TakeState {
  Submission request;
  /// If true, the state comes with a later message. From now on the old one and its mirrors are no
  /// copies of those of other ranks, which may have the new state already (LV-1, MI-1).
  bool announced = false;
  std::vector<std::string> names;  ///< as in the rank's StateListing, when the driver sends it
  std::int64_t updates = 0;        ///< of the state
  /// The rank that sends a packed copy instead: its keeper, or the rank itself if it has the copy.
  Rank from = kDriver;
  Epoch epoch{};          ///< of that copy
  std::int64_t kept = 0;  ///< RecoveryPoint::kept, with a packed copy
  std::string facts;      ///< of the state, as those of a StepOrder
};

struct StateTaken {
  Rank rank;
  ErrorChain error;
};

/// Submit tells the driver that a step is in the ledger under this number.
struct Submit {
  Submission submission;
};

/// TimelineHere tells the driver that a timeline of this step has arrived, or will not arrive.
struct TimelineHere {
  Submission submission;
};

/// Longest wait for the cause of a worker's end, after its loss.
inline constexpr std::chrono::milliseconds kCauseLimit{1000};

/// CauseOfEnd tells the driver why the worker of a rank has ended: "process 4711 was killed by
/// signal 9 (Killed)". Empty: nobody knows.
struct CauseOfEnd {
  Rank rank;
  std::string cause;
};

template <class V>
decltype(auto) visit_fields(LoadPlan& m, V&& v) {
  return v(m.rank, m.plan, m.patience_ms, m.joins);
}
template <class V>
decltype(auto) visit_fields(Ready& m, V&& v) {
  return v(m.rank, m.clock, m.error);
}
template <class V>
decltype(auto) visit_fields(LoadShape& m, V&& v) {
  return v(m.rank, m.request, m.patience_ms);
}
template <class V>
decltype(auto) visit_fields(ShapeLoaded& m, V&& v) {
  return v(m.rank, m.error);
}
template <class V>
decltype(auto) visit_fields(Abort& m, V&& v) {
  return v(m.plan, m.epoch, m.reason);
}
template <class V>
decltype(auto) visit_fields(Status& m, V&& v) {
  return v(m.ranks);
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
  return v(m.rank, m.program, m.instruction, m.seconds, m.waiting_for, m.routes);
}
template <class V>
decltype(auto) visit_fields(SendState& m, V&& v) {
  return v(m.request, m.tensors, m.only, m.copy_of, m.to, m.gradients, m.epoch);
}
template <class V>
decltype(auto) visit_fields(StateListing& m, V&& v) {
  return v(m.rank, m.names, m.shapes, m.types, m.own, m.kept, m.facts, m.updates, m.error);
}
template <class V>
decltype(auto) visit_fields(TakeState& m, V&& v) {
  return v(m.request, m.announced, m.names, m.updates, m.from, m.epoch, m.kept, m.facts);
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
template <class V>
decltype(auto) visit_fields(CauseOfEnd& m, V&& v) {
  return v(m.rank, m.cause);
}

/// Lists every message type. CAF registers them from this list, and the test of MS-1 examines it.
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
                                CauseOfEnd,
                                LoadShape,
                                ShapeLoaded>;

/// The name under which a peer knows a message type. It stays when the list above changes.
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
inline constexpr std::string_view kWireName<CauseOfEnd> = "stagecraft.CauseOfEnd";
template <>
inline constexpr std::string_view kWireName<LoadShape> = "stagecraft.LoadShape";
template <>
inline constexpr std::string_view kWireName<ShapeLoaded> = "stagecraft.ShapeLoaded";

}  // namespace stagecraft
