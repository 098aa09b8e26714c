/// TaskRunner runs the computing instructions of a step: forwards, backwards, accumulation, and the
/// regrouping of rows. It takes their operands from slots and puts their results into slots.
///
/// The step loop makes one for each step.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device/step_times.h"
#include "stagecraft/actors/executor/run/running_step.h"
#include "stagecraft/actors/executor/run/slots.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/compiler/libtorch/random.h"

namespace stagecraft {

class TaskRunner {
 public:
  /// Views all arguments. `trained`: the stages whose buckets add up gradients.
  TaskRunner(RunningStep& step, StepTimes& times, std::vector<StageRuntime>& trained)
      : step_(step), slots_(step.plan.slots), times_(times), trained_(trained) {}

  /// Runs an Op::Run. Does nothing for surplus work (P-8).
  void run(const BoundInstruction& bound);
  /// Runs an Op::Accumulate. Keeps X-1: called in the order of the plan.
  void accumulate(const BoundInstruction& bound);
  /// Runs an Op::Regroup.
  void regroup(const BoundInstruction& bound);

 private:
  void forward(const BoundInstruction& bound);
  void keep(const BoundInstruction& bound,
            const StageRuntime& stage,
            const std::vector<at::Tensor>& outputs);
  void backward(const BoundInstruction& bound);
  [[nodiscard]] std::vector<at::Tensor> inputs(const BoundInstruction& bound) const;
  [[nodiscard]] std::vector<at::Tensor> output_gradients(const BoundInstruction& bound) const;
  [[nodiscard]] RandomKey random_key(const BoundInstruction& bound, const LoadedShape& shape) const;

  RunningStep& step_;
  Slots& slots_;
  StepTimes& times_;
  std::vector<StageRuntime>& trained_;
};

}  // namespace stagecraft
