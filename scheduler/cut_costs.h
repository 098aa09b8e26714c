/// cut_costs: what the stages of a schedule take when the same model is cut into more or fewer of
/// them, so that schedules with different stages per device can be compared.
///
///     costs of 2 stages    |    2    |    4    |
///     of 4 stages          | 1  | 1  | 2  | 2  |      of 1 stage    |         6         |
///
/// The stages of the costs are taken for equal shares of the model, and so are those of the
/// schedule, in the order in which they feed each other. Times and bytes add up over a share. Used
/// by the figures of comparisons and by the search. Pure.
#pragma once

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// How many stages the costs are of: those they list, where these are more than one per device.
[[nodiscard]] int stages_of(const Costs& costs, int devices);

/// Returns the costs, which are of `stages` stages, for the stages of `graph`: of each copy of the
/// model, and of each stage's own microbatches. A cut takes the bytes of the nearest cut in
/// `costs`. Requires: acyclic; stages >= 1.
[[nodiscard]] Costs cut_costs(const Costs& costs, int stages, const StageGraph& graph);

}  // namespace stagecraft
