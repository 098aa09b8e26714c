/// TaskGate stops a rank before each task of a step until the driver releases it, and tells the
/// driver when it has run (Dispatch::PerTask, Dispatch::Decided).
///
/// The step loop has one for a step that is dispatched by task, and uses it on its plan thread.
/// TGA-1: each wait shows that it waits for the driver (WB-1), and has the rank's patience. The end
///       of the step's epoch ends it.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/run/slots.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/futures/transport/transport.h"
#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

class TaskGate {
 public:
  /// Views all references. `stages`: those of the rank. `step`: the tag of the step.
  TaskGate(Transport& transport,
           WaitBoard& board,
           const TrainerOptions& options,
           StepValues& values,
           const std::vector<StageRuntime>& stages,
           const Tag& step)
      : transport_(transport),
        board_(board),
        options_(options),
        values_(values),
        stages_(stages),
        step_(step) {}

  /// Waits for the release of the instruction at `position`.
  /// Errors: UsageArgument with the driver's reason to end the step here; ClusterTimeout; the
  /// transport's.
  void wait(std::size_t position) const;

  /// Waits for the next task of a step whose order the driver decides. Returns the position of its
  /// Run; nothing when all have run. Errors: likewise; WireFormat.
  [[nodiscard]] std::optional<std::size_t> next();

  /// Tells the driver that the task at `position` has run, and what it made. Leaves the values here
  /// with TrainerOptions::column_tensors.
  void tell(std::size_t position, const Instruction& instruction, const Slots& slots) const;

 private:
  [[nodiscard]] at::Tensor released(std::size_t number) const;

  Transport& transport_;
  WaitBoard& board_;
  const TrainerOptions& options_;
  StepValues& values_;
  const std::vector<StageRuntime>& stages_;
  const Tag step_;
  std::size_t decided_ = 0;  ///< tasks that were named
};

}  // namespace stagecraft
