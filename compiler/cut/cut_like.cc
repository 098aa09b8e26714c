#include "stagecraft/compiler/cut/cut_like.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "stagecraft/compiler/cut/marked_stages.h"
#include "stagecraft/compiler/markers.h"

namespace stagecraft {
namespace {

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

StageAssignment cut_like(const Graph& graph, const CompiledProgram& model) {
  if (model.marked) {  // keeps LK-1
    return marked_stages(graph);
  }
  if (same_row(graph, model.graph)) {
    return model.assignment;
  }
  Graph anchored = graph;
  for (Node& node : anchored.nodes) {
    std::erase_if(node.annotations, [](const Annotation& a) { return a.tag == kStageTag; });
    if (const std::optional<int> stage = owner_of(node, graph, model.partition)) {
      node.annotations.push_back({std::string(kStageTag),
                                  model.assignment.names[static_cast<std::size_t>(*stage)],
                                  *stage});
    }
  }
  return marked_stages(anchored);
}

}  // namespace stagecraft
