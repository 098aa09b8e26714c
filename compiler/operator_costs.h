/// measure_operators: what each operator of a captured model costs on one microbatch, measured when
/// somebody asks: compile for a balanced cut, a planner, or a tool that writes the "operators" of a
/// costs.json.
///
/// Every node of the captured graph is replayed alone, on values as the nodes before it made them,
/// and differentiated alone. So no cut and no schedule plays a part.
///
/// OC-1: the program, the batch and everybody's gradients stay as they were.
/// OC-2: bytes kept add up: a value is counted once, with the operator that made its memory,
///       whoever keeps it. So a stage keeps what its operators made, and what it received. What the
///       batch, parameters and buffers hold is counted nowhere.
///
/// A node that has no mask of what to compute (of a recurrent layer) makes all its gradients at
/// once: its `backward_weight` is nothing beside a whole backward, but where a stage's backward is
/// split both halves run it, and W takes what `backward_input` says again.
///
/// What is computed of parameters alone, such as a weight's transpose, counts as a parameter: a
/// backward towards it is a `backward_weight`.
///
/// The user's hooks and custom functions are called as in a step. Two things are not as there: what
/// an operator writes in place is a copy, whose making is measured with it; and a write through a
/// view is not seen by those who read the viewed value.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/operator_cost.h"

namespace stagecraft {

struct OperatorMeasuring {
  int repeats = 5;  ///< the median of so many is taken
  int threads = 1;  ///< inside operators
};

/// Returns the cost of every node of the graph, in its order; `id` is the node's number there. A
/// node that nothing flows back through has no backward.
/// Units: seconds and bytes of one microbatch, the first of the batch.
/// Errors: UsageArgument for no repeats or threads; those of split_batch for the batch; LibTorch's
///         own.
/// Thread: any; the work is done on a thread of its own, which has the count asked for.
[[nodiscard]] std::vector<OperatorCost> measure_operators(const Program& program,
                                                          const Batch& inputs,
                                                          const Batch& labels,
                                                          const OperatorMeasuring& how = {});

/// Likewise before the model is cut: of no stage, on one microbatch.
[[nodiscard]] std::vector<OperatorCost> measure_operators(const Graph& graph,
                                                          const std::vector<at::Tensor>& inputs,
                                                          const std::vector<at::Tensor>& labels,
                                                          const OperatorMeasuring& how = {});

}  // namespace stagecraft
