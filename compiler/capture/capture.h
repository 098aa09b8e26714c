/// Capture runs a module once on one microbatch and records every ATen operator that it calls.
///
/// A boxed fallback on one dispatcher mode key sees each operator before it is decomposed and
/// before autograd, so autograd differentiates a replay of the record as it would the module. A
/// second key, below the first, sees the operators that composite operators call inside: reads of
/// values and hidden random draws.
///
/// CA-1: capture leaves the module's buffers, the inputs and labels, and the default random
///       generator unchanged.
/// CA-2: anything that depends on the values of an input, parameter, buffer or random number is
///       recorded or refused, never frozen into the graph.
/// Thread: any, one capture at a time per thread. The module runs on the calling thread.
#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/module/workload.h"

namespace stagecraft {

/// Returns the graph of forward, loss and metrics on one microbatch.
/// Errors: CompileCapture, naming the operator and its stage marker.
[[nodiscard]] Graph capture(const Workload& workload, const Tensors& inputs, const Tensors& labels);

struct EagerResult {
  Tensors outputs;
  at::Tensor loss;  ///< undefined if the workload has no loss
  Tensors metrics;
  Tensors gradients;  ///< per parameter; undefined if none arrives
};

/// EagerPass says how much of a module to run.
enum class EagerPass : std::uint8_t { Forward, ForwardAndBackward };

/// Runs the module eagerly: forward, and backward if `pass` asks for it and the module trains.
/// Random operators draw as a replay under `key` would. Keeps CA-1.
/// Errors: CompileCapture for errors that the module or LibTorch throws.
[[nodiscard]] EagerResult run_eagerly(const Workload& workload,
                                      const Tensors& inputs,
                                      const Tensors& labels,
                                      const RandomKey& key,
                                      EagerPass pass = EagerPass::ForwardAndBackward);

}  // namespace stagecraft
