/// LoneNode: one node of a captured graph as a stage program of its own, to be run as often as
/// somebody measures it. Made and used by measure_operators. One thread.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/interpreter.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

class LoneNode {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// `all`: it hands on every result, not the first alone.
  LoneNode(const Graph& graph, const Node& node, bool all);

  /// Values of the batch and of other nodes that it reads.
  [[nodiscard]] std::vector<ValueId> inputs() const;
  /// Leaves of its own, which share memory with the graph's.
  [[nodiscard]] const Tensors& parameters() const { return state_.parameters; }
  /// The values that run() returns.
  [[nodiscard]] std::vector<ValueId> results() const;

  /// Runs it on its inputs, always with the same random numbers. Results are as the operator left
  /// them.
  [[nodiscard]] Tensors run(const Tensors& inputs) const;

 private:
  LoneNode(const Graph& graph, StageProgram program);

  StageProgram program_;
  ChunkInterpreter interpreter_;
  StageState state_;
};

}  // namespace stagecraft
