/// TaskGate stops a rank before each task of a step until the driver releases it, and tells the
/// driver when it has run (Dispatch::PerTask).
///
/// The step loop has one for a step that is dispatched by task, and uses it on its plan thread.
/// TGA-1: each wait shows that it waits for the driver (WB-1), and has the rank's patience. The end
///       of the step's epoch ends it.
#pragma once

#include <cstddef>

#include "stagecraft/actors/executor/run/slots.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class TaskGate {
 public:
  /// Views all references. `step`: the tag of the step.
  TaskGate(Transport& transport, WaitBoard& board, const TrainerOptions& options, const Tag& step)
      : transport_(transport), board_(board), options_(options), step_(step) {}

  /// Waits for the release of the instruction at `position`.
  /// Errors: UsageArgument with the driver's reason to end the step here; ClusterTimeout; the
  /// transport's.
  void wait(std::size_t position) const;

  /// Tells the driver that the task at `position` has run, and what it made.
  void tell(std::size_t position, const Instruction& instruction, const Slots& slots) const;

 private:
  Transport& transport_;
  WaitBoard& board_;
  const TrainerOptions& options_;
  const Tag step_;
};

}  // namespace stagecraft
