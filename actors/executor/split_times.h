/// time_split: how much longer a backward takes in halves, I and W, than whole: each half goes
/// through autograd's nodes, which is little where operators are large and a fifth where they are
/// small. Used by profile().
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/model_times.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Returns the time of both halves over that of the whole, at least 1, of the last of two stages
/// that the model is cut into for it: medians of runs that take turns. 1 where no cut gives a stage
/// with both halves.
/// Errors: those of time_model.
/// Thread: any; the work is done on a thread of its own, which has the count asked for.
[[nodiscard]] double time_split(const Graph& graph,
                                const std::vector<at::Tensor>& inputs,
                                const std::vector<at::Tensor>& labels,
                                const ModelTiming& how);

}  // namespace stagecraft
