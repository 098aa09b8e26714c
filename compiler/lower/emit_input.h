/// EmitInput holds the parts of a step that all its rank lists share, for emit and its parts.
///
/// lower makes one for a step. Views what it names.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/lower/step_source.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/stage/stage_program.h"
#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

struct EmitInput {
  const TrainingDag& dag;
  const DagAdjacency& edges;
  const StepSource& source;
  const CompiledProgram& program;
  const PlanTables& tables;
  const std::vector<int>& positions;    ///< by node: in its own list
  int units = 1;                        ///< of the step (LA-3)
  std::vector<int> group_of_bucket;     ///< positions in PlanTables::groups; -1: not summed
  std::vector<int> exchange_of_bucket;  ///< likewise; -1: not divided
  std::vector<int> group_of_tie;

  [[nodiscard]] const DagEdge& edge(int e) const { return dag.edges[static_cast<std::size_t>(e)]; }
  [[nodiscard]] const PlanEdge& tensor(EdgeId id) const { return source.edges[id.index()]; }
  [[nodiscard]] const StageProgram& program_of(StageId s) const {
    return program.partition.stages[source.stages[s.index()].program.index()];
  }
  [[nodiscard]] int size_of(StageId s) const { return source.stages[s.index()].size; }

  /// Returns the task of a computing node in one of the list's units of samples (EM-2).
  [[nodiscard]] Task task_in(const DagNode& node, int unit) const {
    const int per_unit = dag.microbatches / size_of(node.stage);
    return {node.task().kind, node.stage, Microbatch(node.microbatch.value + unit * per_unit)};
  }
};

/// Returns the name of a tensor that reached this rank by an edge. Gradients and received
/// activations carry the consumer's name, because two consumers on this rank get two tensors. A
/// local activation is the producer's one tensor.
[[nodiscard]] inline ValueKey key_of(const PlanEdge& edge, Microbatch m, bool received) {
  if (edge.role == Role::Gradient) {
    return {edge.value, Role::Gradient, edge.from, m};
  }
  return {edge.value, Role::Activation, received ? edge.to : edge.from, m};
}

/// Says which chunks of a stage do what.
struct ChunkFacts {
  std::vector<bool> trains;       ///< by chunk: a gradient of a parameter is complete there
  std::vector<int> first_reader;  ///< by input of the stage
  std::vector<int> maker;         ///< by output of the stage
};

/// Finds the facts of each stage once.
class StageFacts {
 public:
  explicit StageFacts(const EmitInput& input) : input_(input) {}

  [[nodiscard]] const ChunkFacts& of(StageId stage);

 private:
  const EmitInput& input_;
  std::map<StageId, ChunkFacts> facts_;  // by stage of the program
};

}  // namespace stagecraft
