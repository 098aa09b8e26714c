#include "stagecraft/compiler/written_buffers.h"

#include <set>

namespace stagecraft {

std::vector<int> written_buffers(const Graph& graph, const StageProgram& stage) {
  std::set<int> written;
  for (const Node& node : stage.nodes) {
    for (const ValueId id : node.writes) {
      written.insert(graph.at(id).alias_set);
    }
  }
  std::set<int> buffers;
  for (const Value& value : graph.values) {
    if (value.kind == ValueKind::Buffer && written.contains(value.alias_set)) {
      buffers.insert(value.position);
    }
  }
  return {buffers.begin(), buffers.end()};
}

}  // namespace stagecraft
