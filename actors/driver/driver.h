/// Driver takes a trainer's steps one after the other, sends each rank one StepOrder, waits for one
/// StepReport from each, and decides how the step ended.
///
///   Idle --Submit--> Running --all answered, and their timelines are here--> Idle
///                     |
///                     +--deadline, or a worker ended--> Asking --agents answered, and causes
///                     |                                   |      are known, or too late
///                     |                                   v
///                     +--a rank failed--------------> Aborting
///   Aborting --all answered or deadline--> Idle
///
/// The crew of a trainer makes it. It is a scheduled actor that never blocks, and a peer of the
/// data plane: it sends inputs and labels. A driver whose worker is lost runs no more steps: a new
/// driver with a new worker takes over, with later epochs.
///
/// DR-1: the driver runs one step at a time. The next starts when every rank has answered the order
///       of the previous one, so an abort never reaches a later step.
/// DR-2: an abort starts a new epoch on every rank and here; only then does the failed step's
///       future complete. A step that fails in its last answer starts one too. The driver does not
///       give up a rank before it has told the rank to abort.
/// DR-3: the driver waits for nothing without a deadline. Every order and question is settled by
///       its answer, by the end of the actor that was asked, or by a deadline, whichever comes
///       first. Timelines have the step's deadline; a step that then lacks only timelines is done
///       without them. All deadlines are times of one clock, and one message to itself (tick) makes
///       the driver look at them.
/// DR-4: after the state of the weights is unknown, every step fails until they are replaced. The
///       step that made it so fails with WorkerLost, or with advice on how to replace them. After a
///       worker is lost, steps fail until there is a driver with another worker in its place.
/// DR-5: an exception in the driver is logged, and fails every step with its reason.
/// DR-6: a step that has lost a worker fails as soon as the others are told to abort. It does not
///       wait for them: one may be in a task of minutes.
/// DR-7: when the driver ends, all its steps fail, and so do all later ones.
/// DR-8: a message tells the driver why a worker has ended (CauseOfEnd); it handles other messages
///       until then. Its errors about the loss wait for the cause, at most kCauseLimit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

class TaskDispatch;  // task_dispatch.h

struct DriverSetup {
  std::vector<Worker> members;              ///< by rank
  std::vector<std::int64_t> clock_offsets;  ///< by rank: offset of its times to our clock
  PlanId plan_id;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<StepLedger> ledger;
  double base_learning_rate = 0.0;
  TrainerOptions options;
  std::shared_ptr<TaskDispatch> dispatch = {};  ///< null for Dispatch::Plan
  bool recovers = false;  ///< Trainer::recover restores the state of any one rank, for messages
  /// By rank: completes with the cause when the worker has ended (Binding::cause_of_end). Empty:
  /// nobody knows causes.
  std::vector<Future<std::string>> causes;
  /// The epoch of the first step. A driver that follows another driver of the plan begins after the
  /// last epoch of that one, after its end. The ranks give up all epochs before.
  Epoch first_epoch{0};
  /// The newest epoch that was begun, for the maker of the next driver; may be null.
  std::shared_ptr<std::atomic<std::int64_t>> epoch;
  std::shared_ptr<const Clock> clock = Clock::current();
};

/// The least time for an abort. Otherwise an abort has a step's deadline; but a rank looks for an
/// abort only between two instructions, even if that deadline is short.
inline constexpr std::chrono::milliseconds kLeastAbortLimit{1000};

/// The longest wait for the answers of the agents of a late step. Agents never compute.
inline constexpr std::chrono::milliseconds kAskLimit{2000};

/// The longest wait for the answers of the other agents after a worker has ended.
inline constexpr std::chrono::milliseconds kLossAskLimit{500};

/// The time between two looks at a step. While a step runs for longer than this, the driver asks
/// the agents once per interval what their ranks do. So there is a report of a rank that is lost or
/// falls silent. With more than 250 ranks, the interval is a millisecond per rank.
inline constexpr std::chrono::milliseconds kLookInterval{250};

[[nodiscard]] DriverActor spawn_driver(ActorHost& host, DriverSetup setup);

}  // namespace stagecraft
