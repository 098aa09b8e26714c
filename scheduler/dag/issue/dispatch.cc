#include "stagecraft/scheduler/dag/issue/dispatch.h"

#include <algorithm>
#include <tuple>

#include "stagecraft/base/check.h"
#include "stagecraft/scheduler/dag/issue/rendezvous.h"

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
  const Rendezvous together(dag);
  const std::vector<int> order = topological_order(dag, edges, together);
  SC_CHECK(order.size() == dag.nodes.size(), "a dispatched graph has no cycle");
  std::vector<int> level(dag.nodes.size());
  std::vector<std::vector<int>> lists(dag.places.size());
  const auto level_of = [&](int n) -> int& { return level[static_cast<std::size_t>(n)]; };
  for (const int n : order) {
    for (const int e : edges.incoming(n)) {
      const int from = dag.edges[static_cast<std::size_t>(e)].from;
      const DagKind before = dag.node(from).kind;
      const DagKind after = dag.node(n).kind;
      // A level puts its sends before its receives, so a send behind a receive is in the next one.
      const bool next_in_stream = is_transfer(before) && is_transfer(after) &&
                                  dispatch_priority(before) <= dispatch_priority(after);
      level_of(n) = std::max(level_of(n), level_of(from) + (next_in_stream ? 0 : 1));
    }
    lists[static_cast<std::size_t>(dag.node(n).place)].push_back(n);
    const auto members = together.members(together.first(n));
    if (dag.node(n).kind == DagKind::Receive && members.size() > 1) {
      level_of(n) = std::max(level_of(n), level_of(members.front()) + 1);
    } else if (n == members.back()) {
      int highest = 0;
      for (const int member : members) {
        highest = std::max(highest, level_of(member));
      }
      for (const int member : members) {
        level_of(member) = highest;
      }
    }
  }
  for (std::vector<int>& list : lists) {
    std::ranges::stable_sort(list, {}, [&](int n) {
      return std::tuple(level_of(n), dispatch_priority(dag.node(n).kind));
    });
  }
  return lists;
}

}  // namespace stagecraft
