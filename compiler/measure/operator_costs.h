/// measure_operators measures the cost of each operator of a captured model on one microbatch.
/// compile calls it for a balanced cut; planners and tools that write the "operators" of a
/// costs.json call it too.
///
/// Every node of the captured graph is replayed alone, on values as the nodes before it made them,
/// and differentiated alone. The result does not depend on a cut or a schedule.
///
/// OC-1: the program, the batch and all gradients stay as they were.
/// OC-2: kept bytes add up. A value is counted once, with the operator that made its memory,
///       even if another operator keeps it. A stage therefore keeps the values that its operators
///       made and those that it received. Memory of the batch, parameters and buffers is not
///       counted.
///
/// A node without a mask of the gradients to compute (of a recurrent layer) makes all its gradients
/// at once. Its `backward_weight` adds nothing to a whole backward. If a stage's backward is split,
/// however, both halves run the node, and W takes the time of `backward_input` again.
///
/// A value computed from parameters alone, such as a weight's transpose, counts as a parameter: a
/// backward toward it is a `backward_weight`.
///
/// The user's hooks and custom functions are called as in a step. Two things differ from a step: an
/// operator that writes in place writes a copy, and making the copy is measured with it; and a
/// write through a view is not seen by readers of the viewed value.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/costs/operator_cost.h"

namespace stagecraft {

struct OperatorMeasuring {
  int repeats = 5;  ///< the result is the median of so many runs
  int threads = 1;  ///< inside operators
};

/// Returns the cost of every node of the graph, in its order; `id` is the node's number there. A
/// node without gradients has no backward.
/// Units: seconds and bytes of one microbatch, the first of the batch.
/// Errors: UsageArgument for no repeats or threads; those of split_batch for the batch; LibTorch's
///         own.
/// Thread: any; the work is done on a thread of its own with the requested count of threads.
[[nodiscard]] std::vector<OperatorCost> measure_operators(const Program& program,
                                                          const Batch& inputs,
                                                          const Batch& labels,
                                                          const OperatorMeasuring& how = {});

/// Does the same before the model is cut: without stages, on one microbatch.
[[nodiscard]] std::vector<OperatorCost> measure_operators(const Graph& graph,
                                                          const std::vector<at::Tensor>& inputs,
                                                          const std::vector<at::Tensor>& labels,
                                                          const OperatorMeasuring& how = {});

}  // namespace stagecraft
