#include "stagecraft/scheduler/model/stage_parts.h"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

StageId stage_of(const StageParts& parts, StageId part) {
  return parts[part.index()].stage;
}

/// Returns whether the part owes a gradient to another stage.
bool owes_others(const StageGraph& graph, const StageParts& parts, StageId part) {
  return std::ranges::any_of(graph.preds(part), [&](StageId from) {
    return stage_of(parts, from) != stage_of(parts, part) && graph.sends_gradient(part, from);
  });
}

}  // namespace

StageGraph whole_stages(const StageGraph& graph, const StageParts& parts) {
  const int stages = parts.back().stage.value + 1;
  std::vector<StageGraph::Edge> edges;
  for (const auto& [from, to] : graph.edges()) {
    const StageGraph::Edge edge{stage_of(parts, StageId(from)).value,
                                stage_of(parts, StageId(to)).value};
    if (edge.first != edge.second) {
      edges.push_back(edge);
    }
  }
  std::ranges::sort(edges);
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  StageGraph whole = StageGraph::from_edges(stages, edges);
  for (int s = 0; s < stages; ++s) {
    whole.set_needs_input_grad(StageId(s), false);
    whole.set_needs_weight_grad(StageId(s), false);
  }
  for (int p = 0; p < graph.size(); ++p) {
    const StageId part(p), stage = stage_of(parts, part);
    whole.set_name(stage, parts[part.index()].stage_name);
    if (owes_others(graph, parts, part)) {
      whole.set_needs_input_grad(stage, true);
    }
    if (graph.needs_weight_grad(part)) {
      whole.set_needs_weight_grad(stage, true);
    }
  }
  for (const TiedParameter& tied : graph.tied()) {
    TiedParameter of_stages{.name = tied.name, .stages = {}, .reduced = tied.reduced};
    for (const StageId part : tied.stages) {
      const StageId stage = stage_of(parts, part);
      if (std::ranges::find(of_stages.stages, stage) == of_stages.stages.end()) {
        of_stages.stages.push_back(stage);
      }
    }
    if (of_stages.stages.size() > 1) {
      whole.add_tied(std::move(of_stages));
    }
  }
  return whole;
}

}  // namespace stagecraft
