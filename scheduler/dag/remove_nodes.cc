#include "stagecraft/scheduler/dag/remove_nodes.h"

#include <algorithm>
#include <utility>

namespace stagecraft {

void remove_nodes(TrainingDag& dag, const std::set<int>& removed) {
  if (removed.empty()) {
    return;
  }
  const DagAdjacency edges(dag);
  std::set<std::pair<int, int>> bridges;
  for (const int n : removed) {
    for (const int in : edges.incoming(n)) {
      for (const int out : edges.outgoing(n)) {
        bridges.emplace(dag.edges[static_cast<std::size_t>(in)].from,
                        dag.edges[static_cast<std::size_t>(out)].to);
      }
    }
  }
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
    if (numbered(from) != kNone && numbered(to) != kNone) {
      kept.push_back({.from = numbered(from), .to = numbered(to), .data = false});
    }
  }
  for (DagNode& node : nodes) {
    node.peer = numbered(node.peer);
  }
  dag.nodes = std::move(nodes);
  dag.edges = std::move(kept);
}

}  // namespace stagecraft
