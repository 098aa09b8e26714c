/// graphpipe is the planner that keeps a model's parallel branches. It searches for stages over the
/// model's graph (graphpipe/search.h), and 1F1B runs the stages on their graph.
///
///     tower 1: 0 - 1            4 stages; 0 and 2 start at once,
///                   > 3         so the pipeline has depth 3; a chain of them would have 4
///     tower 2:     2
///
/// A stage may have copies on 2, 4, 8, ... devices, which divide its microbatches. A schedule has
/// microbatches of one size, so those of such a plan are as small as the stage with the most copies
/// takes them (LA-3): one of the sizes that the request allows.
///
/// planner.h calls it. Pure; any thread.
/// Source: Jeon et al., "GraphPipe: Improving Performance and Scalability of DNN Training with
/// Graph Pipeline Parallelism".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

struct GraphpipeOptions {
  bool copies = true;  ///< stages may have copies
  /// Each stage has its own size among the sizes of the request.
  bool stage_sizes = false;
};

/// Returns why the planner cannot answer: the request gives a schedule other than 1F1B.
[[nodiscard]] std::optional<std::string> graphpipe_refuses(const PlanRequest& request);

/// Returns the best candidates of all sizes of microbatch, eight at most: for every size one with
/// and one without copies, and, if requested, one whose stages have sizes of their own. The
/// fastest comes first. It searches exact answers for the first two only. Without `options` the
/// request's own options apply.
/// Errors: PlanInfeasible if no stages fit the memory; UsageArgument for a request without
/// operators, devices or sizes that divide the batch.
[[nodiscard]] std::vector<Candidate> graphpipe_candidates(const PlanRequest& request,
                                                          const GraphpipeOptions& options);
[[nodiscard]] std::vector<Candidate> graphpipe_candidates(const PlanRequest& request);

}  // namespace stagecraft
