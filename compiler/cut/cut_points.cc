#include "stagecraft/compiler/cut/cut_points.h"

#include "stagecraft/compiler/cut/memory_groups.h"

namespace stagecraft {

std::vector<std::size_t> cut_points(const Graph& graph) {
  std::vector<int> inside(graph.nodes.size() + 1,
                          0);  // +1 at the beginning of a group, -1 at its end
  for (const MemoryGroup& group : memory_groups(graph)) {
    ++inside[group.operators.front() + 1];
    --inside[group.operators.back() + 1];
  }
  std::vector<std::size_t> points;
  int open = 0;
  bool computes = true;  // a rank has work since the last point
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    open += inside[n];
    const bool on_driver = is_driver_code(graph.nodes[n]);
    if (open == 0 && (n == 0 || (computes && !on_driver))) {
      points.push_back(n);
      computes = false;
    }
    computes = computes || !on_driver;
  }
  return points;
}

}  // namespace stagecraft
