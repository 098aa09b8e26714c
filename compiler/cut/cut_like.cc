#include "stagecraft/compiler/cut/cut_like.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "stagecraft/compiler/markers.h"

namespace stagecraft {
namespace {

bool has_markers(const Graph& graph) {
  return std::ranges::any_of(graph.nodes,
                             [](const Node& node) { return !stage_marker(node).empty(); });
}

bool same_row(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) {
    return x.name == y.name && x.overload == y.overload;
  });
}

/// The one stage that has what the operator uses, if it uses anything.
std::optional<int> owner_of(const Node& node, const Graph& graph, const Partition& like) {
  std::set<int> owners;
  for (const ValueId read : reads_of(node)) {
    const Value& value = graph.at(read);
    const auto is_it = [&](const auto& held) { return held.position == value.position; };
    for (const StageProgram& stage : like.stages) {
      if ((value.kind == ValueKind::Parameter && std::ranges::any_of(stage.parameters, is_it)) ||
          (value.kind == ValueKind::Buffer && std::ranges::any_of(stage.buffers, is_it))) {
        owners.insert(stage.id.value);
      }
    }
  }
  return owners.size() == 1 ? std::optional(*owners.begin()) : std::nullopt;
}

}  // namespace

Graph cut_like(Graph graph, const Graph& model, const Partition& like) {
  if (like.stages.size() == 1 || has_markers(graph)) {  // keeps LK-1
    return graph;
  }
  const bool same = same_row(graph, model);
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    Node& node = graph.nodes[n];
    const std::optional<int> stage =
        same ? std::optional(like.stage_of[n]) : owner_of(node, graph, like);
    if (stage) {
      node.annotations.push_back(
          {std::string(kStageTag), like.stages[static_cast<std::size_t>(*stage)].name, *stage});
    }
  }
  return graph;
}

}  // namespace stagecraft
