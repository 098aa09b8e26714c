/// TaskRuns divides the computing nodes of a rank list into the runs of its instructions.
///
/// emit makes it once for a list.
/// TKR-1: chunks of a task that stand next to each other, and between which no collective begins or
///       is needed, are one run. So a stage without communication inside is one run.
#pragma once

#include <cstddef>
#include <set>
#include <vector>

#include "stagecraft/compiler/lower/emit_input.h"
#include "stagecraft/compiler/plan/instruction.h"
#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

class TaskRuns {
 public:
  /// The computing nodes of one Run, by position in the list, and their chunks.
  struct Run {
    std::vector<std::size_t> nodes;
    ChunkRange chunks;
  };

  /// `nodes`: those of the list, in issue order; `units`: of samples that each rank of the list has
  /// (LA-3). Views all arguments.
  TaskRuns(const EmitInput& input, const std::vector<int>& nodes, int units);

  /// Returns the run of a computing node. `position`: in the list.
  [[nodiscard]] const Run& of(std::size_t position) const {
    return runs_[static_cast<std::size_t>(run_of_[position])];
  }
  /// Returns the position of a node in the list.
  [[nodiscard]] std::size_t position_of(int node) const {
    return static_cast<std::size_t>(positions_[static_cast<std::size_t>(node)]);
  }
  /// Returns whether the tasks of an overlap group may run in any order: each is one run, and no
  /// collective begins between them.
  [[nodiscard]] bool is_loose(int group) const { return loose_.contains(group); }
  /// Returns whether a transfer is emitted with the run that it serves: every receive of a block,
  /// and a send unless other computing comes between.
  [[nodiscard]] bool is_in_block(std::size_t position) const;
  /// Returns the edge by which a transfer gets its tensor, or hands it on.
  [[nodiscard]] int data_edge(int transfer) const;

 private:
  [[nodiscard]] const DagNode& node_at(std::size_t position) const {
    return dag_.node(nodes_[position]);
  }
  [[nodiscard]] const DagEdge& edge(int e) const { return dag_.edges[static_cast<std::size_t>(e)]; }
  void find_runs();
  void find_loose_groups();
  /// Returns whether node `b`, the next to compute after `a`, belongs to the same run.
  [[nodiscard]] bool continues(std::size_t a, std::size_t b) const;

  const TrainingDag& dag_;
  const DagAdjacency& edges_;
  const std::vector<int>& nodes_;
  const int units_;
  const std::vector<int>& positions_;
  std::vector<int> run_of_;  // by position; -1: does not compute
  std::vector<Run> runs_;
  std::set<int> loose_;  // overlap groups
};

}  // namespace stagecraft
