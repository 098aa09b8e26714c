/// time_model measures the times of a whole model's operators inside a step, with the code that
/// steps use: one stage program, autograd's engine, the bucket and its optimizer.
///
/// compiler/measure/operator_costs.h measures each operator alone, with warm caches. Here the times
/// of the operators add up to that of the microbatch (MDT-1). profile() uses it.
///
/// A node of autograd belongs to the operator that made it, by its sequence number. The time from
/// its begin to the begin of the next node counts for its operator, because after the node the
/// engine hands its gradients on, and adds them to those of other readers.
/// MDT-1: in every repetition forwards and backwards of the operators add up to the microbatch's
///        time.
/// A separate run counts the memory held, with waiting gradients, which a measurement of one
/// operator alone does not see.
/// MDT-2: the graph's parameters and buffers do not change: copies are trained.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

struct ModelTiming {
  int repeats = 5;  ///< the median is taken over these, after some to warm up
  int threads = 1;  ///< inside operators
  Optimizer optimizer;
  bool master_weights = false;  ///< TrainerOptions::master_weights
};

/// OperatorTimes holds the times and peaks of one operator. Units: seconds of one microbatch,
/// medians; bytes.
struct OperatorTimes {
  double forward = 0;
  double backward = 0;
  double sums = 0;  ///< of the backward: additions to other gradients and sums outside nodes
  double forward_peak = 0;  ///< bytes: most that the microbatch holds while the operator runs
  /// Bytes: the most that the microbatch holds while the operator goes back, without the values
  /// that operators before it made in the forward.
  double backward_peak = 0;
};

struct ModelTimes {
  std::vector<OperatorTimes> operators;  ///< by node of the graph
  std::vector<double> microbatches;      ///< seconds, forward and backward, one for each repetition
  double update = 0;                     ///< seconds, of all parameters, with the gradient's norm
  double saved_bytes = 0;                ///< kept from forward to backward
};

/// Measures the model.
/// Errors: UsageArgument for no repeats or no threads; LibTorch's own.
/// Thread: any; a thread of its own does the work, with the requested count of threads.
[[nodiscard]] ModelTimes time_model(const Graph& graph,
                                    const std::vector<at::Tensor>& inputs,
                                    const std::vector<at::Tensor>& labels,
                                    const ModelTiming& how);

}  // namespace stagecraft
