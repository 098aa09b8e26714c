/// partition divides a captured graph into stage programs, by an assignment of its operators, and
/// makes the DAG between them. A parameter that several stages use is in each of them (SP-2).
#pragma once

#include <set>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct Partition {
  std::vector<StageProgram> stages;
  std::vector<StageId> order;  ///< a topological order of the stages; ties by number
};

/// Returns the stages. `results`: computed values that stages also send to the driver.
/// Errors: CompilePartition for an in-place operator on a value that another stage reads, and for a
/// parameter with a hook that two stages use; each names operators and markers.
[[nodiscard]] Partition partition(const Graph& graph,
                                  const StageAssignment& assignment,
                                  const std::vector<ValueId>& results = {});

/// Returns the whole graph as one program, with its outputs and then its metrics. The cut must not
/// change their values.
[[nodiscard]] StageProgram whole_program(const Graph& graph);

/// Returns the positions in the model of all parameters, or buffers, that the stages have.
template <class T>
[[nodiscard]] std::set<int> positions_in(const Partition& stages,
                                         std::vector<T> StageProgram::*held) {
  std::set<int> all;
  for (const StageProgram& stage : stages.stages) {
    for (const T& one : stage.*held) {
      all.insert(one.position);
    }
  }
  return all;
}

}  // namespace stagecraft
