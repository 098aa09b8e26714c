/// measure_split: what a backward in halves, I and W, costs beside a whole one: time, as each half
/// goes through autograd's nodes, which is little where operators are large and a fifth where they
/// are small; and memory, by operator, so that it adds up for any stage. Used by profile().
///
///     made by the operator, and still there after I      W reads it
///     the gradient that arrived at its node of autograd  W starts from it
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/profile/model_times.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// What a microbatch holds of an operator between the halves. Units: bytes.
struct WaitingBytes {
  double values = 0;
  double gradients = 0;
};

struct SplitCost {
  double time = 1;  ///< of both halves over that of the whole, at least 1: medians, in turns
  std::vector<std::optional<WaitingBytes>> waiting;  ///< by node, where it was measured
};

/// Returns that of the last of two stages that the model is cut into for it: where possible all
/// operators but those that begin it. If no cut gives a stage with both halves, `waiting` is empty.
/// Errors: those of time_model.
/// Thread: any; a thread of its own does the work, with the thread count asked for.
[[nodiscard]] SplitCost measure_split(const Graph& graph,
                                      const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& labels,
                                      const ModelTiming& how);

}  // namespace stagecraft
