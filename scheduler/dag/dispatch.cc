#include "stagecraft/scheduler/dag/dispatch.h"

#include <algorithm>
#include <tuple>

#include "stagecraft/base/check.h"

namespace stagecraft {
namespace {

/// Returns the place within a level of nodes of this kind; lower is earlier.
int dispatch_priority(DagKind kind) {
  switch (kind) {
    case DagKind::Send:
      return 0;
    case DagKind::AllGather:
    case DagKind::AllToAll:
      return 1;
    case DagKind::AllReduce:
    case DagKind::ReduceScatter:
      return 2;
    case DagKind::Receive:
      return 4;
    default:
      return 3;
  }
}

}  // namespace

std::vector<std::vector<int>> dispatch_order(const TrainingDag& dag) {
  const DagAdjacency edges(dag);
  const std::vector<int> order = topological_order(dag, edges);
  SC_CHECK(order.size() == dag.nodes.size(), "a dispatched graph has no cycle");
  std::vector<int> level(dag.nodes.size());
  std::vector<std::vector<int>> lists(dag.places.size());
  for (const int n : order) {
    int& own = level[static_cast<std::size_t>(n)];
    for (const int e : edges.incoming(n)) {
      const int from = dag.edges[static_cast<std::size_t>(e)].from;
      own = std::max(own, level[static_cast<std::size_t>(from)] + 1);
    }
    lists[static_cast<std::size_t>(dag.node(n).place)].push_back(n);
  }
  for (std::vector<int>& list : lists) {
    std::ranges::sort(list, {}, [&](int n) {
      return std::tuple(level[static_cast<std::size_t>(n)], dispatch_priority(dag.node(n).kind), n);
    });
  }
  return lists;
}

}  // namespace stagecraft
