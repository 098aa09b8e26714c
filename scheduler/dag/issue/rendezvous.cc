#include "stagecraft/scheduler/dag/issue/rendezvous.h"

#include <map>
#include <utility>

namespace stagecraft {

Rendezvous::Rendezvous(const TrainingDag& dag) : first_(dag.nodes.size()) {
  int first_vote = kNone;
  std::map<Meeting, int> first_of;
  for (int n = 0; n < dag.size(); ++n) {
    const DagNode& node = dag.node(n);
    int& first = first_[static_cast<std::size_t>(n)];
    first = n;
    if (node.kind == DagKind::Receive && node.peer != kNone) {
      first = node.peer;
    } else if (node.kind == DagKind::Vote) {
      first_vote = first_vote == kNone ? n : first_vote;
      first = first_vote;
    } else if (is_collective(node.kind)) {
      first = first_of.try_emplace(meeting_of(dag, n), n).first->second;
    }
  }
  begin_.assign(dag.nodes.size() + 1, 0);
  for (const int first : first_) {
    ++begin_[static_cast<std::size_t>(first) + 1];
  }
  for (std::size_t n = 1; n < begin_.size(); ++n) {
    begin_[n] += begin_[n - 1];
  }
  nodes_.resize(first_.size());
  std::vector<int> next(begin_.begin(), begin_.end() - 1);
  for (int n = 0; n < dag.size(); ++n) {
    nodes_[static_cast<std::size_t>(next[static_cast<std::size_t>(first(n))]++)] = n;
  }
}

std::vector<int> topological_order(const TrainingDag& dag,
                                   const DagAdjacency& edges,
                                   const Rendezvous& together) {
  std::vector<int> missing(dag.nodes.size());
  for (int n = 0; n < dag.size(); ++n) {
    missing[static_cast<std::size_t>(together.first(n))] +=
        static_cast<int>(edges.incoming(n).size());
  }
  std::vector<int> order;
  order.reserve(dag.nodes.size());
  const auto append = [&](int first) {
    const auto members = together.members(first);
    order.insert(order.end(), members.begin(), members.end());
  };
  for (int n = 0; n < dag.size(); ++n) {
    if (together.first(n) == n && missing[static_cast<std::size_t>(n)] == 0) {
      append(n);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const int e : edges.outgoing(order[i])) {
      const int next = together.first(dag.edges[static_cast<std::size_t>(e)].to);
      if (--missing[static_cast<std::size_t>(next)] == 0) {
        append(next);
      }
    }
  }
  return order;
}

}  // namespace stagecraft
