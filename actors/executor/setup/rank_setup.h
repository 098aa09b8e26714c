/// RankSetup holds all data that one rank needs before its first step, self-contained: its stages,
/// its share of the plan, the ranks it votes with, optimizer and options. A RankShape holds later
/// data.
///
/// It is cut out of a Job for every rank, once, when a trainer starts, and given to the rank's
/// executor.
/// RU-1: it never changes, so ranks of a process may share parts of it. `visit_fields` lists all of
///       it, down to the operands of an operator. Three parts belong to one process alone and say
///       so: the attachments of a stage program, TrainerOptions::before_instruction and the
///       callable of a CustomOptimizer.
/// RU-2: it holds no weights: they come as state, over the data plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/bucket_cut.h"
#include "stagecraft/actors/executor/setup/dispatch_columns.h"
#include "stagecraft/actors/executor/setup/plan_share.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// Job is the work that a trainer gives its ranks.
struct Job {
  PlanId plan_id;
  std::shared_ptr<const CompiledProgram> program;
  std::shared_ptr<const Plan> train;
  Optimizer optimizer;
  TrainerOptions options;
  bool has_driver_row = false;  ///< the last rank runs it
  // Hold what the driver releases. Both are null for Dispatch::Plan.
  std::shared_ptr<const DispatchColumns> columns = {};   ///< for Dispatch::PerTask
  std::shared_ptr<const DecidableTasks> decidable = {};  ///< for Dispatch::Decided
  /// Returns futures of so many values that a task has made and that stay on its rank; empty
  /// without TrainerOptions::column_tensors.
  std::function<std::vector<Future<at::Tensor>>(const StepValues::Place& made, std::size_t count)>
      task_values = {};
};

struct RankSetup {
  PlanId plan_id;                     ///< part of all tags
  PlanShare train;                    ///< how it trains
  StagePrograms stages;               ///< by stage of its list
  std::vector<Rank> ranks;            ///< all voting ranks, ascending
  std::int64_t model_parameters = 0;  ///< number of parameters of the whole model
  /// The slices of every tensor of a batch for a microbatch, for ranks that read their batches
  /// themselves (LocalBatch).
  std::vector<BatchSlice> inputs, labels;
  Optimizer optimizer;
  TrainerOptions options;

  [[nodiscard]] Rank rank() const { return train.rank.rank; }
  /// Returns the buckets of one of its stages, by position (PlanBucket), with this rank's shard.
  [[nodiscard]] std::vector<BucketCut> buckets_of(std::size_t stage) const;
};

/// Returns the setup of a rank. Requires: the job's plans have a list for `rank`.
[[nodiscard]] RankSetup rank_setup(const Job& job, Rank rank);

template <class V>
decltype(auto) visit_fields(RankSetup& m, V&& v) {
  return v(m.plan_id,
           m.train,
           m.stages,
           m.ranks,
           m.model_parameters,
           m.inputs,
           m.labels,
           m.optimizer,
           m.options);
}

}  // namespace stagecraft
