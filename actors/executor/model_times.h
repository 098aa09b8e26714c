/// time_model: what the operators of a whole model take inside a step, on the road that steps take:
/// one stage program, autograd's engine, the bucket and its optimizer.
///
/// Where each operator is measured alone (compiler/operator_costs.h) caches are warm; here the
/// times of the operators add up to that of the microbatch (MDT-1). Used by profile().
///
/// A node of autograd is known for who made it by its sequence number. The time from its begin to
/// the next one's is its operator's: behind it the engine hands its gradients on, and adds them to
/// those of other readers.
/// MDT-1: in every repetition forwards and backwards of the operators add up to the microbatch's
/// time.
/// What is held is counted beside, in a run of its own: waiting gradients are part of it, which no
/// operator that is measured alone sees.
/// MDT-2: the graph's parameters and buffers stay as they are: copies are trained.
#pragma once

#include <cstddef>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/compiler/graph.h"

namespace stagecraft {

struct ModelTiming {
  int repeats = 5;  ///< the median of so many is taken, after some to warm up
  int threads = 1;  ///< inside operators
  Optimizer optimizer;
};

/// Units: seconds of one microbatch, medians; bytes.
struct OperatorTimes {
  double forward = 0;
  double backward = 0;
  double sums = 0;  ///< of the backward: what was added outside nodes, to other gradients and sums
  double peak = 0;  ///< bytes: most at once while it runs, either way, of what the microbatch takes
};

struct ModelTimes {
  std::vector<OperatorTimes> operators;  ///< by node of the graph
  std::vector<double> microbatches;      ///< seconds, forward and backward, one for each repetition
  double update = 0;       ///< seconds, of all parameters, the gradient's norm with it
  double saved_bytes = 0;  ///< kept from forward to backward
};

/// Errors: UsageArgument for no repeats or threads; LibTorch's own.
/// Thread: any; the work is done on a thread of its own, which has the count asked for.
[[nodiscard]] ModelTimes time_model(const Graph& graph,
                                    const std::vector<at::Tensor>& inputs,
                                    const std::vector<at::Tensor>& labels,
                                    const ModelTiming& how);

}  // namespace stagecraft
