/// measure_split measures the cost of a backward in halves, I and W, in addition to a whole one.
/// The cost in time is little where operators are large and a fifth where they are small, because
/// each half goes through autograd's nodes. The cost in memory is by operator, so that it adds up
/// for any stage. profile() uses it.
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

/// WaitingBytes is the memory of an operator that a microbatch holds between the halves. Units:
/// bytes.
struct WaitingBytes {
  double values = 0;
  double gradients = 0;
};

struct SplitCost {
  double time = 1;  ///< of both halves over that of the whole, at least 1: medians, in turns
  std::vector<std::optional<WaitingBytes>> waiting;  ///< by node, where it was measured
};

/// Measures the last of two stages of a cut that is made for this: if possible it has all operators
/// but those that begin it. If no cut gives a stage with both halves, `waiting` is empty.
/// Errors: those of time_model.
/// Thread: any; a thread of its own does the work, with the requested count of threads.
[[nodiscard]] SplitCost measure_split(const Graph& graph,
                                      const std::vector<at::Tensor>& inputs,
                                      const std::vector<at::Tensor>& labels,
                                      const ModelTiming& how);

}  // namespace stagecraft
