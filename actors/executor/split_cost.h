/// measure_split: compares a backward in halves, I and W, with a whole one. It costs more time,
/// since each half passes through autograd's nodes: little for large operators, a fifth for small
/// ones. It costs more memory, since gradients wait between the halves. Used by profile().
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/model_times.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

struct SplitCost {
  double time = 1;   ///< both halves / the whole, at least 1: medians of alternating runs
  double bytes = 1;  ///< kept by a microbatch between the halves, divided by those before them
};

/// Cuts the model into two stages and returns the cost of the second one. Returns 1 and 1 if no cut
/// gives a stage with both halves.
/// Errors: those of time_model.
/// Thread: any; a thread of its own does the work, with the thread count asked for.
[[nodiscard]] SplitCost measure_split(const Graph& graph,
                                      const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& labels,
                                      const ModelTiming& how);

}  // namespace stagecraft
