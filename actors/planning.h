/// plan: cut, schedule and microbatches for a program on the workers that there are.
///
///     sc::Program whole = sc::compile(model, options);                     // however it is cut
///     sc::Profile found = sc::profile(whole, inputs, labels, {.microbatch_sizes = {2, 4, 8}});
///     sc::PlanProposal best = sc::plan(whole, found.costs, cluster).front();
///     options.cut = sc::planned_cut(found.costs, best);
///     options.microbatches = best.microbatches;                            // of the same batch
///     sc::Program program = sc::compile(model, options);
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
  int batch = 0;  ///< samples of a step; 0: those of the program's, whatever its microbatches
  double memory = std::numeric_limits<double>::infinity();  ///< bytes of every worker
  std::string planner = "auto";
  /// Of the machine, where all workers are on one; 0: each has its own.
  int processors = 0;
};

/// Returns what the planner proposes for one worker per rank of the cluster, best first, each in
/// microbatches of one of the sizes that the costs are of and that divide the batch; only what a
/// Trainer can run: no replicas of single stages.
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
