/// SingleOperator is one node of a captured graph as a stage program of its own, so that it can be
/// run and measured repeatedly. measure_operators makes and uses it, on one thread.
#pragma once

#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/stage/interpreter.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

class SingleOperator {
 public:
  using Tensors = std::vector<at::Tensor>;

  /// `all`: run() returns every result, not just the first.
  SingleOperator(const Graph& graph, const Node& node, bool all);

  /// Returns the values of the batch and of other nodes that the node reads.
  [[nodiscard]] std::vector<ValueId> inputs() const;
  /// Returns leaves of its own, which share memory with the graph's parameters.
  [[nodiscard]] const Tensors& parameters() const { return state_.parameters; }
  /// Returns the values that run() returns.
  [[nodiscard]] std::vector<ValueId> results() const;

  /// Runs the node on its inputs, always with the same random numbers. Returns the results as the
  /// operator made them.
  [[nodiscard]] Tensors run(const Tensors& inputs) const;

 private:
  SingleOperator(const Graph& graph, StageProgram program);

  StageProgram program_;
  ChunkInterpreter interpreter_;
  StageState state_;
};

}  // namespace stagecraft
