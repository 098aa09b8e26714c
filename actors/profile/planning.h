/// plan proposes cut, schedule and microbatches for a program on the given workers.
///
///     sc::Program whole = sc::compile(model, options);                     // with any cut
///     sc::Profile found = sc::profile(whole, inputs, labels, {.microbatch_sizes = {2, 4, 8}});
///     sc::PlanProposal best = sc::plan(whole, found.costs, cluster).front();
///     options.cut = sc::planned_cut(found.costs, best);
///     options.microbatches = best.microbatches;                            // of the same batch
///     sc::Program program = sc::compile(model, options);
///     sc::Trainer trainer(cluster, program, best.candidate.schedule, sc::AdamW{});
///
/// The planners and their request are in scheduler/planners/. Any thread.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft {

struct PlanningOptions {
  int batch = 0;  ///< samples of a step; 0: those of the program, for any of its microbatches
  double memory = std::numeric_limits<double>::infinity();  ///< bytes of every worker
  std::string planner = "auto";
  /// Plans may need copies that share what they hold (Candidate::sharing), if nothing else fits.
  bool may_share = false;
  /// Processors of the machine, if all workers share one; 0: each worker has its own.
  int processors = 0;
};

/// Returns the planner's proposals for one worker per rank of the cluster, best first. Each uses
/// microbatches of a size that the costs cover and that divides the batch. It proposes only plans
/// that a Trainer can run: no replicas of single stages.
/// Errors: UsageArgument for costs of another model; those of propose().
[[nodiscard]] std::vector<PlanProposal> plan(const Program& program,
                                             const Costs& costs,
                                             const Cluster& cluster,
                                             const PlanningOptions& options = {});

/// Returns the proposals for this number of workers.
[[nodiscard]] std::vector<PlanProposal> plan(const Program& program,
                                             const Costs& costs,
                                             int workers,
                                             const PlanningOptions& options = {});

}  // namespace stagecraft
