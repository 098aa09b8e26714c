/// RankSetup: all that one rank must know before its first step, as data that stands by itself: its
/// stages, the list it trains by, the groups it votes and sums in, optimizer and options. What it
/// is told later is a RankVariant.
///
/// Cut out of a Job for every rank, once, when a trainer starts; handed to the rank's executor.
/// RU-1: nothing in it points at the program or at another rank, and `visit_fields` lists all of
///       it, down to the operands of an operator. Three things are of one process alone and say so:
///       the attachments of a stage program, TrainerOptions::before_instruction and the callable of
///       a CustomOptimizer.
/// RU-2: weights are no part of it: they come as state, over the data plane.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/bound_plan.h"
#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/executor/trainer_options.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/split_batch.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

/// What a trainer has its ranks do.
struct Job {
  PlanId plan_id;
  std::shared_ptr<const CompiledProgram> program;  ///< laid out for the schedule's replicas
  std::shared_ptr<const Plan> train;
  Optimizer optimizer;
  TrainerOptions options;
};

struct RankSetup {
  Rank rank;
  PlanId plan_id;                    ///< part of all tags
  std::vector<StageProgram> stages;  ///< this rank's, ascending
  RankPlan train;
  std::vector<Rank> ranks;  ///< all that vote, ascending
  std::vector<ReplicaGroup> replica_groups;
  std::vector<Tie> ties;
  int microbatches = 1;               ///< Plan::microbatches
  int losses = 1;                     ///< Plan::losses: by how many gradients are divided
  std::int64_t model_parameters = 0;  ///< how many the whole model has
  /// What a microbatch gets of every tensor of a batch, for ranks that read theirs (LocalBatch).
  std::vector<BatchSlice> inputs, labels;
  Optimizer optimizer;
  TrainerOptions options;
};

/// Requires: the job's plans have a list for `rank`.
[[nodiscard]] RankSetup rank_setup(const Job& job, Rank rank);

/// What the setup's list is bound to. Views the setup.
[[nodiscard]] BindScope bind_scope(const RankSetup& setup);

template <class V>
decltype(auto) visit_fields(RankSetup& m, V&& v) {
  return v(m.rank,
           m.plan_id,
           m.stages,
           m.train,
           m.ranks,
           m.replica_groups,
           m.ties,
           m.microbatches,
           m.losses,
           m.model_parameters,
           m.inputs,
           m.labels,
           m.optimizer,
           m.options);
}

}  // namespace stagecraft
