/// Probe runs stage programs while a model is compiled, to find facts of a cut program that only a
/// run shows: the bytes that its stages keep, and where gradients flow. compile and its checks use
/// it.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/compiler/stage/partition.h"

namespace stagecraft {

/// kProbeKey has another step and microbatch than any run of capture.
inline constexpr RandomKey kProbeKey{.seed = 1, .step = 1, .microbatch = 1};

/// Returns the graph's parameters and buffers for a run of `program`: new leaves, since the replay
/// itself calls the hooks on the module's parameters, and buffers that may be written.
[[nodiscard]] StageState probe_state(const Graph& graph, const StageProgram& program);

/// StageRun is the run of a stage of one chunk. It has leaves at its inputs, so that its autograd
/// graph ends where the stage does.
struct StageRun {
  std::vector<at::Tensor> leaves;
  StageState state;
  ChunkResult result;
};

/// Runs the stages one after the other on a microbatch, and stores the bytes that each keeps and
/// needs. Returns a run per stage, with the values that autograd kept.
[[nodiscard]] std::vector<StageRun> run_stages(const Graph& graph,
                                               Partition& partition,
                                               const std::vector<at::Tensor>& inputs,
                                               const std::vector<at::Tensor>& labels);

}  // namespace stagecraft
