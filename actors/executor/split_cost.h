/// measure_split: what a backward in halves, I and W, costs beside a whole one: time, as each half
/// goes through autograd's nodes, which is little where operators are large and a fifth where they
/// are small; and memory, as gradients wait between the halves. Used by profile().
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/model_times.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

struct SplitCost {
  double time = 1;   ///< of both halves over that of the whole, at least 1: medians, in turns
  double bytes = 1;  ///< that a microbatch keeps between the halves over those before them
};

/// Returns that of the last of two stages that the model is cut into for it; of no cut that gives a
/// stage with both halves, 1 and 1.
/// Errors: those of time_model.
/// Thread: any; the work is done on a thread of its own, which has the count asked for.
[[nodiscard]] SplitCost measure_split(const Graph& graph,
                                      const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& labels,
                                      const ModelTiming& how);

}  // namespace stagecraft
