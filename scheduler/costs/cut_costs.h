/// cut_costs scales the costs of stages to a cut of the same model into more or fewer stages, so
/// that schedules with different numbers of stages per device can be compared.
///
///     costs of 2 stages    |    2    |    4    |
///     of 4 stages          | 1  | 1  | 2  | 2  |      of 1 stage    |         6         |
///
/// The function treats the stages of the costs as equal shares of the model, and likewise the
/// stages of the schedule, in the order in which they feed each other. Times and bytes add up over
/// a share. The figures of comparisons and the search use it. Pure.
#pragma once

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the number of stages that the costs describe: the stages they list, if these are more
/// than one per device.
[[nodiscard]] int stages_of(const Costs& costs, int devices);

/// Returns `costs`, which describe `stages` stages, converted to the stages of `graph`, for each
/// copy of the model and for each stage's own microbatches. A cut takes the bytes of the nearest
/// cut in `costs`. Requires: acyclic; stages >= 1.
[[nodiscard]] Costs cut_costs(const Costs& costs, int stages, const StageGraph& graph);

}  // namespace stagecraft
