/// StageExecutor: runs one rank's plan, instruction by instruction. It has never heard of actors.
///
/// Made by the stage worker on its plan thread and used on that thread alone. From outside it is
/// seen through its Progress, and stopped through its transport, whose epoch ends.
///
/// gradients are added into the bucket in the order of the plan's Accumulate instructions.
/// no weight changes before the vote; a step that fails before it leaves weights, optimizer
///      state, buffers and step count as they were.
/// AC-1: of an update of several batches a rank keeps, behind each but the last, the sums of
///       gradients and what forwards have written to buffers. Both are dropped, and buffers are as
///       before the first batch, when one of them fails, and when an order says that none came
///       before it. An evaluation in between changes neither.
/// AC-2: random operators count the microbatches of an update through all its batches.
/// after a failed step the slots are empty and the next step may run.
/// once its transport is closed, or the step's epoch is over, a rank begins no further
///      instruction, whichever is next. Behind the vote an abort comes too late: to stop between
///      two updates would only lose the weights.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/mirror.h"
#include "stagecraft/actors/executor/progress.h"
#include "stagecraft/actors/executor/rank_setup.h"
#include "stagecraft/actors/executor/rank_variant.h"
#include "stagecraft/actors/executor/step_record.h"
#include "stagecraft/actors/executor/timeline.h"
#include "stagecraft/actors/executor/transfers.h"
#include "stagecraft/futures/transport/transport.h"

namespace stagecraft {

/// One tensor of a rank's state with the name it has in checkpoints (state_names.h).
using StateTensor = NamedTensor;

class StageExecutor {
 public:
  /// All state is zero until it is loaded.
  /// Thread: the plan thread; sets LibTorch's thread count for it.
  StageExecutor(RankSetup setup,
                std::shared_ptr<Transport> transport,
                std::shared_ptr<Progress> progress = std::make_shared<Progress>());
  ~StageExecutor();
  StageExecutor(const StageExecutor&) = delete;
  StageExecutor& operator=(const StageExecutor&) = delete;

  /// Takes on the stages for another shape or an evaluation, in the place of what it has under
  /// those numbers, if anything. Requires: no step is under way.
  /// Errors: PlanInvalid for stages or a list that do not fit this rank's.
  void add_variant(RankVariant variant);

  /// Runs one step of the plan. `local`: reads what the driver would send; empty: it sends it.
  /// Errors: thrown with rank, stage, microbatch, step and task. WorkerAborted when the transport's
  ///         epoch was advanced, TransportClosed when it was closed; WorkerLost when the failure
  ///         came after the vote: this rank's weights are undefined until loaded.
  StepReport run(const StepOrder& order, const LocalRead& local = {});

  /// When each instruction of the last step ran, by its position in the rank's plan; empty unless
  /// it was recorded and taken by nobody yet.
  [[nodiscard]] std::vector<InstructionTime> take_timeline();

  /// Takes copies of what of `state` is this rank's; the rest is left as it is.
  void load(const std::vector<StateTensor>& state);

  /// Everything a checkpoint keeps of this rank, weights first. The tensors are the living ones:
  /// copy to keep.
  [[nodiscard]] std::vector<StateTensor> state() const;

  /// The same as it was behind the last update, in the midst of the next (AC-1). To be read only.
  [[nodiscard]] std::vector<StateTensor> committed_state() const;

  /// What there is of an update that was begun is given up (AC-1).
  void drop_accumulated();
  /// Gradients of the last update by the names of their parameters (Bucket::gradients); living.
  [[nodiscard]] std::vector<StateTensor> gradients() const;

  /// The copies that are kept of committed states; null unless TrainerOptions::mirror is set.
  [[nodiscard]] Mirror* mirror();

  /// Bytes of tensors in the plan's slots and of what autograd keeps: 0 between steps.
  [[nodiscard]] std::int64_t bytes_held() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
