#include "stagecraft/scheduler/dag/dag_source.h"

namespace stagecraft {

DagSource bare_source(const StageGraph& graph) {
  DagSource source{.graph = graph, .chunks = {}, .tensors = {}, .ties = {}};
  for (int s = 0; s < graph.size(); ++s) {
    const StageId stage(s);
    // Without costs, every stage that trains has weights: one byte stands for them.
    source.chunks.push_back(
        {{.regions = {}, .reads = {}, .parameter_bytes = graph.needs_weight_grad(stage) ? 1 : 0}});
  }
  for (const auto& [from, to] : graph.edges()) {
    const int number = static_cast<int>(source.tensors.size());
    source.tensors.push_back({.from = StageId(from),
                              .from_chunk = 0,
                              .gradient_chunk = 0,
                              .to = StageId(to),
                              .to_chunk = 0,
                              .owes_gradient = graph.sends_gradient(StageId(to), StageId(from)),
                              .activation = EdgeId(2 * number),
                              .gradient = EdgeId(2 * number + 1)});
  }
  for (const TiedParameter& tied : graph.tied()) {
    source.ties.push_back({.name = tied.name, .stages = tied.stages});
  }
  return source;
}

}  // namespace stagecraft
