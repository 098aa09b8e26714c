/// Rendezvous groups the nodes of a training DAG that happen together: a Send with its Receive, the
/// collectives of several rank lists that are one operation, and the votes.
///
/// Passes that order communication treat such nodes as one. A Rendezvous is made once; the DAG may
/// get further edges afterwards, but no further nodes.
#pragma once

#include <span>
#include <vector>

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

class Rendezvous {
 public:
  explicit Rendezvous(const TrainingDag& dag);

  /// Returns the first of the nodes that happen with this one: the node itself if it is alone.
  [[nodiscard]] int first(int node) const { return first_[static_cast<std::size_t>(node)]; }
  /// Returns all nodes that happen together. Requires: `first` is the first of them.
  [[nodiscard]] std::span<const int> members(int first) const {
    const auto n = static_cast<std::size_t>(first);
    return std::span(nodes_).subspan(static_cast<std::size_t>(begin_[n]),
                                     static_cast<std::size_t>(begin_[n + 1] - begin_[n]));
  }

 private:
  std::vector<int> first_;          // by node
  std::vector<int> begin_, nodes_;  // members by first node
};

/// Returns the nodes, each after all nodes that it needs; nodes that became possible first come
/// first. Nodes that happen together are adjacent, after all nodes that any of them needs. Some are
/// missing if there is a cycle.
[[nodiscard]] std::vector<int> topological_order(const TrainingDag& dag,
                                                 const DagAdjacency& edges,
                                                 const Rendezvous& together);

}  // namespace stagecraft
