/// plan: cut and schedule for a program on the workers that there are.
///
///     sc::Program whole = sc::compile(model, {...});                       // however it is cut
///     sc::Costs costs = sc::profile(whole, batch);
///     sc::PlanProposal best = sc::plan(whole, costs, cluster, {.batch = 32}).front();
///     sc::Program program = sc::compile(model, {..., .microbatches = best.microbatches,
///                                                .cut = sc::planned_cut(costs, best)});
///     sc::Trainer trainer(cluster, program, best.candidate.schedule, sc::AdamW{});
///
/// Planners and their request: scheduler/planners/. Any thread.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft {

struct PlanningOptions {
  int batch = 1;                                            ///< samples of a step
  double memory = std::numeric_limits<double>::infinity();  ///< bytes of every worker
  std::string planner = "auto";
  /// Of the machine, where all workers are on one; 0: each has its own.
  int processors = 0;
};

/// Returns what the planner proposes for one worker per rank of the cluster, best first; only what
/// a Trainer can run: no replicas of single stages.
/// Errors: UsageArgument for costs of another model; those of propose().
[[nodiscard]] std::vector<PlanProposal> plan(const Program& program,
                                             const Costs& costs,
                                             const Cluster& cluster,
                                             const PlanningOptions& options);

/// Likewise for so many workers.
[[nodiscard]] std::vector<PlanProposal> plan(const Program& program,
                                             const Costs& costs,
                                             int workers,
                                             const PlanningOptions& options);

}  // namespace stagecraft
