/// Probe: runs of stage programs while a model is compiled, for what a cut program shows only when
/// it runs: what its stages keep, and where gradients flow. Used by compile and its checks.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/interpreter.h"
#include "stagecraft/compiler/partition.h"

namespace stagecraft {

/// Another step and microbatch than any that capture ran as.
inline constexpr RandomKey kProbeKey{.seed = 1, .step = 1, .microbatch = 1};

/// The graph's parameters and buffers for a run of `program`: leaves of their own, since the replay
/// calls the hooks on the module's itself, and buffers to write.
[[nodiscard]] StageState probe_state(const Graph& graph, const StageProgram& program);

/// The run of a stage of one chunk: leaves at its inputs, so that its graph of autograd ends where
/// the stage does.
struct StageRun {
  std::vector<at::Tensor> leaves;
  StageState state;
  ChunkResult result;
};

/// Runs the stages one after the other on a microbatch, and notes the bytes that each keeps and
/// needs. Returns a run per stage, with what autograd kept of it.
[[nodiscard]] std::vector<StageRun> run_stages(const Graph& graph,
                                               Partition& partition,
                                               const std::vector<at::Tensor>& inputs,
                                               const std::vector<at::Tensor>& labels);

}  // namespace stagecraft
