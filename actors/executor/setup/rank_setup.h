/// RankSetup: all that one rank must know before its first step, as self-contained data: its
/// stages, the list it trains by, the groups it votes and sums in, optimizer and options. A
/// RankShape holds what it learns later.
///
/// Cut out of a Job for every rank, once, when a trainer starts; given to the rank's executor.
/// RU-1: nothing in it points at the program or at another rank, and `visit_fields` lists all of
///       it, down to the operands of an operator. Three parts belong to one process alone and say
///       so: the attachments of a stage program, TrainerOptions::before_instruction and the
///       callable of a CustomOptimizer.
/// RU-2: it holds no weights: they come as state, over the data plane.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

/// The work that a trainer gives its ranks.
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
  std::vector<StageProgram> stages;  ///< of this rank, ascending
  RankPlan train;
  std::vector<Rank> ranks;  ///< all voting ranks, ascending
  std::vector<ReplicaGroup> replica_groups;
  std::vector<Tie> ties;
  int microbatches = 1;               ///< Plan::microbatches
  int losses = 1;                     ///< Plan::losses: gradients are divided by it
  std::int64_t model_parameters = 0;  ///< number of parameters of the whole model
  /// The slices of every tensor of a batch for a microbatch, for ranks that read theirs
  /// (LocalBatch).
  std::vector<BatchSlice> inputs, labels;
  Optimizer optimizer;
  TrainerOptions options;
};

/// Requires: the job's plans have a list for `rank`.
[[nodiscard]] RankSetup rank_setup(const Job& job, Rank rank);

/// Returns the scope to which the setup's list is bound. Views the setup.
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
