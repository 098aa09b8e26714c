/// Driver: takes a trainer's steps one after the other, sends each rank one StepOrder, waits for
/// one StepReport from each, and decides what became of the step.
///
///   Idle --Submit--> Running --all answered, and their timelines here--> Idle
///                     |
///                     +--deadline--> Asking --statuses, or none in time--> Aborting
///                     +--a rank failed or ended--------------------------> Aborting
///   Aborting --all answered or deadline--> Idle
///
/// Made by the crew of a trainer; a scheduled actor that never blocks. It is a peer of the data
/// plane: inputs and labels leave from here.
///
/// DR-1: one step at a time. The next starts when every rank has answered the one before, so an
///       abort never meets a step it is not meant for.
/// DR-2: an abort starts a new epoch on every rank and here; only then does the failed step's
///       future complete. No rank is given up before it was told.
/// DR-3: nothing is waited for without a deadline, and every request is settled by its answer, by
///       the end of its receiver or by a deadline, whichever comes first. Timelines have the step's
///       deadline; a step that has all but these by then is done without them.
/// DR-4: when nobody can say what the weights are, every later step fails until they are replaced.
/// DR-5: whatever goes wrong in here is logged, and fails every step with its reason.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/caf_types.h"
#include "stagecraft/actors/executor/trainer_options.h"
#include "stagecraft/actors/launch/launcher.h"
#include "stagecraft/actors/step_ledger.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

struct DriverSetup {
  std::vector<Worker> members;              ///< by rank
  std::vector<std::int64_t> clock_offsets;  ///< by rank: what brings its times into our clock
  PlanId plan_id;
  std::shared_ptr<Transport> transport;
  std::shared_ptr<StepLedger> ledger;
  std::shared_ptr<const Plan> train, evaluate;
  double base_learning_rate = 0.0;
  TrainerOptions options;
};

/// Least time for an abort, which has a step's deadline otherwise: a rank looks for it between two
/// instructions, however short that deadline is.
inline constexpr std::chrono::milliseconds kLeastAbortLimit{1000};

[[nodiscard]] DriverActor spawn_driver(ActorHost& host, DriverSetup setup);

}  // namespace stagecraft
