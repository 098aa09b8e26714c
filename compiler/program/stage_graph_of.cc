#include "stagecraft/compiler/program/stage_graph_of.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "stagecraft/compiler/program/ties.h"

namespace stagecraft {

StageGraph stage_graph_of(const Partition& partition) {
  std::vector<std::pair<int, int>> edges;
  for (const StageProgram& stage : partition.stages) {
    for (const StageOutput& output : stage.outputs) {
      for (const StageId consumer : output.consumers) {
        edges.emplace_back(stage.id.value, consumer.value);
      }
    }
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  StageGraph graph = StageGraph::from_edges(static_cast<int>(partition.stages.size()), edges);
  for (const StageProgram& stage : partition.stages) {
    const bool owes =
        std::ranges::any_of(stage.inputs, [](const StageInput& i) { return i.owes_gradient; });
    graph.set_name(stage.id, stage.name);
    graph.set_needs_input_grad(stage.id, owes);
    graph.set_needs_weight_grad(stage.id, stage.trains());
  }
  for (TiedParameter& tied : tied_parameters(partition)) {
    graph.add_tied(std::move(tied));
  }
  return graph;
}

}  // namespace stagecraft
