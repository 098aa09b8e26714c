/// Driver: takes a trainer's steps one after the other, sends each rank one StepOrder, waits for
/// one StepReport from each, and decides what became of the step.
///
///   Idle --Submit--> Running --all answered, and their timelines here--> Idle
///                     |
///                     +--deadline, or a worker ended--> Asking --agents have said it,--> Aborting
///                     |                                          or not in time
///                     +--a rank failed----------------------------------> Aborting
///   Aborting --all answered or deadline--> Idle
///
/// Made by the crew of a trainer; a scheduled actor that never blocks. It is a peer of the data
/// plane: inputs and labels leave from here. A driver whose worker is lost runs no more steps: one
/// with a new worker in its place takes over, behind it in the count of epochs.
///
/// DR-1: one step at a time. The next starts when every rank has answered the one before, so an
///       abort never meets a step it is not meant for.
/// DR-2: an abort starts a new epoch on every rank and here; only then does the failed step's
///       future complete. No rank is given up before it was told.
/// DR-3: nothing is waited for without a deadline, and every order and question is settled by its
///       answer, by the end of who was asked or by a deadline, whichever comes first. Timelines
///       have the step's deadline; a step that has all but these by then is done without them.
/// DR-4: when nobody can say what the weights are, every later step fails until they are replaced;
///       when a worker is lost, at once and until there is a driver with another in its place.
/// DR-5: whatever goes wrong in here is logged, and fails every step with its reason.
/// DR-6: a step that has lost a worker fails as soon as the others are told to abort. It does not
///       wait for them: one may be in a task of minutes.
/// DR-7: when the driver ends, every step that it was given and every one it was to be given fails.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/executor/trainer_options.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/step_ledger.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

struct DriverSetup {
  std::vector<Worker> members;              ///< by rank
  std::vector<std::int64_t> clock_offsets;  ///< by rank: what brings its times into our clock
  PlanId plan_id;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<StepLedger> ledger;
  double base_learning_rate = 0.0;
  TrainerOptions options;
  /// Why the worker of a rank has ended, as a clause: "process 4711 was killed by signal 9
  /// (Killed)". Empty where nobody knows. Called on the driver's thread: returns at once.
  std::function<std::string(Rank)> cause_of_end;
  /// Of the first step. One that follows on another driver of the plan begins behind the last epoch
  /// of that one, once it has ended; the ranks are told to give up all before.
  Epoch first_epoch{0};
  /// The newest epoch that was begun, for whoever makes the next driver; may be null.
  std::shared_ptr<std::atomic<std::int64_t>> epoch;
};

/// Least time for an abort, which has a step's deadline otherwise: a rank looks for it between two
/// instructions, however short that deadline is.
inline constexpr std::chrono::milliseconds kLeastAbortLimit{1000};

/// Longest wait for what the agents of the others say, once a worker has ended.
inline constexpr std::chrono::milliseconds kLossAskLimit{500};

/// While a step runs for longer than this the agents are asked once in so long what their ranks do,
/// so that something is known of one that is lost or falls silent. With more than 250 ranks, a
/// millisecond per rank.
inline constexpr std::chrono::milliseconds kLookInterval{250};

[[nodiscard]] DriverActor spawn_driver(ActorHost& host, DriverSetup setup);

}  // namespace stagecraft
