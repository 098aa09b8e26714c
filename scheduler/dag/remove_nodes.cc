#include "stagecraft/scheduler/dag/remove_nodes.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

/// Returns the pairs of nodes with removed nodes alone between them.
std::set<std::pair<int, int>> bridges_over(const TrainingDag& dag, const std::set<int>& removed) {
  const DagAdjacency edges(dag);
  const auto edge = [&dag](int number) { return dag.edges[static_cast<std::size_t>(number)]; };
  std::set<std::pair<int, int>> bridges;
  for (const int first : removed) {
    std::set<int> passed{first};
    for (std::vector<int> open{first}; !open.empty();) {
      const int n = open.back();
      open.pop_back();
      for (const int out : edges.outgoing(n)) {
        const int to = edge(out).to;
        if (removed.contains(to)) {
          if (passed.insert(to).second) {
            open.push_back(to);
          }
          continue;
        }
        for (const int in : edges.incoming(first)) {
          if (!removed.contains(edge(in).from)) {
            bridges.emplace(edge(in).from, to);
          }
        }
      }
    }
  }
  return bridges;
}

}  // namespace

void remove_nodes(TrainingDag& dag, const std::set<int>& removed) {
  if (removed.empty()) {
    return;
  }
  const std::set<std::pair<int, int>> bridges = bridges_over(dag, removed);
  std::vector<int> number(dag.nodes.size(), kNone);
  std::vector<DagNode> nodes;
  for (int n = 0; n < dag.size(); ++n) {
    if (!removed.contains(n)) {
      number[static_cast<std::size_t>(n)] = static_cast<int>(nodes.size());
      nodes.push_back(dag.node(n));
    }
  }
  const auto numbered = [&](int n) {
    return n == kNone ? kNone : number[static_cast<std::size_t>(n)];
  };
  std::vector<DagEdge> kept;
  for (DagEdge edge : dag.edges) {
    edge.from = numbered(edge.from);
    edge.to = numbered(edge.to);
    if (edge.from != kNone && edge.to != kNone) {
      kept.push_back(edge);
    }
  }
  for (const auto& [from, to] : bridges) {
    kept.push_back({.from = numbered(from), .to = numbered(to), .data = false});
  }
  for (DagNode& node : nodes) {
    node.peer = numbered(node.peer);
  }
  dag.nodes = std::move(nodes);
  dag.edges = std::move(kept);
}

}  // namespace stagecraft
