/// The planner graphpipe: stages that keep a model's parallel branches, as the search over its
/// graph finds them (graphpipe/search.h), run by 1F1B on the graph of the stages.
///
///     tower 1: 0 - 1            4 stages, of which 0 and 2 start at once:
///                   > 3         a pipeline of depth 3, where a chain of the same would be of 4
///     tower 2:     2
///
/// Called through planner.h. Pure; any thread.
/// Source: Jeon et al., "GraphPipe: Improving Performance and Scalability of DNN Training with
/// Graph Pipeline Parallelism".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"

namespace stagecraft {

struct GraphpipeOptions {
  bool replicas = false;  ///< stages on 2, 4, 8 .. devices that share its microbatches
  /// Each stage has a size of its own among those of the request.
  bool stage_sizes = false;
};

/// Why the planner cannot answer: a schedule that is given, other than 1F1B.
[[nodiscard]] std::optional<std::string> graphpipe_refuses(const PlanRequest& request);

/// Returns the best candidates of all sizes of microbatch, eight at most: for every size one with
/// and one without replicas, and one where stages have sizes of their own, if asked for. The
/// fastest comes first; exact answers are looked for to the first two only. Without options those
/// of the request.
/// Errors: PlanInfeasible where no stages fit the memory; UsageArgument for a request without
///         operators, devices or sizes that divide the batch.
[[nodiscard]] std::vector<Candidate> graphpipe_candidates(const PlanRequest& request,
                                                          const GraphpipeOptions& options);
[[nodiscard]] std::vector<Candidate> graphpipe_candidates(const PlanRequest& request);

}  // namespace stagecraft
