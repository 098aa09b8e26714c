/// StageExecutor runs one rank's plan, instruction by instruction. It does not know actors.
///
/// The stage worker makes it on its plan thread, and only that thread uses it. Other threads see it
/// through its Progress, and stop it through its transport, by ending the epoch.
///
/// gradients are added into the bucket in the order of the plan's Accumulate instructions.
/// no weight changes before the vote; a step that fails before it leaves weights, optimizer
///      state, buffers and step count as they were.
/// AC-1: in an update of several batches a rank keeps, after each batch but the last, the sums of
///       gradients and the buffers that forwards have written. If one batch fails, or an order says
///       that no batch came before it, the sums are dropped and the buffers are restored to those
///       before the first batch. An evaluation in between changes neither.
/// AC-2: random operators count the microbatches of an update through all its batches.
/// after a failed step the slots are empty and the next step may run.
/// once its transport is closed, or the step's epoch is over, a rank begins no further
///      instruction. After the vote an abort comes too late, because a stop between two updates
///      would only lose the weights; it ends the waits for weights of other shards, which are lost.
#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/actors/executor/mirror/mirror.h"
#include "stagecraft/actors/executor/run/transfers.h"
#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/executor/setup/rank_shape.h"
#include "stagecraft/actors/executor/step/progress.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// StateTensor is one tensor of a rank's state with its name in checkpoints (state_names.h).
using StateTensor = NamedTensor;

class StageExecutor {
 public:
  /// All state is zero until it is loaded. `values`: gets what steps leave on this rank. `left`: as
  /// Mirror's.
  /// Thread: the plan thread; sets LibTorch's thread count for it.
  StageExecutor(RankSetup setup,
                std::shared_ptr<Transport> transport,
                std::shared_ptr<Progress> progress = std::make_shared<Progress>(),
                std::shared_ptr<StepValues> values = std::make_shared<StepValues>(),
                std::shared_ptr<LeftCopies> left = nullptr);
  ~StageExecutor();
  StageExecutor(const StageExecutor&) = delete;
  StageExecutor& operator=(const StageExecutor&) = delete;

  /// Takes on the stages for another shape or an evaluation, and replaces those that it has under
  /// these numbers.
  /// Requires: no step is in progress.
  /// Errors: PlanInvalid for stages or a list that do not fit this rank's.
  void add_shape(RankShape shape);

  /// Runs one step of the plan. `local` reads the inputs; if it is empty, the driver sends them.
  /// Errors: thrown with rank, stage, microbatch, step and task. WorkerAborted if the transport's
  ///         epoch was advanced, TransportClosed if it was closed; WorkerLost if the failure came
  ///         after the vote: this rank's weights are undefined until loaded.
  StepReport run(const StepOrder& order, const LocalRead& local = {});

  /// Returns the times of each instruction of the last step, by its position in the rank's plan.
  /// Empty if they were not recorded, or were taken before.
  [[nodiscard]] std::vector<InstructionTime> take_timeline();

  /// Copies the tensors of `state` that belong to this rank, as StageRuntime::load.
  void load(const std::vector<StateTensor>& state);

  /// Returns all tensors that a checkpoint keeps of this rank, weights first. They are the living
  /// tensors: copy to keep.
  [[nodiscard]] std::vector<StateTensor> state() const;

  /// Returns the state after the last update, also in the middle of the next one (AC-1). Read only.
  [[nodiscard]] std::vector<StateTensor> committed_state() const;

  /// Gives up an update that was begun (AC-1).
  void drop_accumulated();
  /// Returns the gradients of the last update by the names of their parameters
  /// (StageBuckets::gradients); living.
  [[nodiscard]] std::vector<StateTensor> gradients() const;

  /// Returns the copies kept of committed states; null unless TrainerOptions::mirror is set.
  [[nodiscard]] Mirror* mirror();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
