#include "stagecraft/scheduler/dag/stream_order.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace stagecraft {
namespace {

bool is_ordered(const DagNode& node) {
  return !is_transfer(node.kind);
}

/// Counts the successors of nodes on their own rank list, on demand.
class Successors {
 public:
  Successors(const TrainingDag& dag, const DagAdjacency& edges)
      : dag_(dag), edges_(edges), count_(dag.nodes.size(), kNone), seen_(dag.nodes.size(), kNone) {}

  int of(int node) {
    int& count = count_[static_cast<std::size_t>(node)];
    if (count == kNone) {
      count = -1;  // the node itself
      open_.assign(1, node);
      seen_[static_cast<std::size_t>(node)] = node;
      while (!open_.empty()) {
        const int n = open_.back();
        open_.pop_back();
        ++count;
        for (const int e : edges_.outgoing(n)) {
          const int next = dag_.edges[static_cast<std::size_t>(e)].to;
          if (seen_[static_cast<std::size_t>(next)] != node) {
            seen_[static_cast<std::size_t>(next)] = node;
            open_.push_back(next);
          }
        }
      }
    }
    return count;
  }

 private:
  const TrainingDag& dag_;
  const DagAdjacency& edges_;
  std::vector<int> count_;
  std::vector<int> seen_;  // the node whose search came here last
  std::vector<int> open_;
};

/// The places of nodes in the topological order that takes the lowest number first. Found on
/// demand.
class Positions {
 public:
  Positions(const TrainingDag& dag, const DagAdjacency& edges) : dag_(dag), edges_(edges) {}

  int of(int node) {
    if (position_.empty()) {
      find();
    }
    return position_[static_cast<std::size_t>(node)];
  }

 private:
  void find() {
    std::vector<std::size_t> missing(dag_.nodes.size());
    std::priority_queue<int, std::vector<int>, std::greater<>> ready;
    for (int n = 0; n < dag_.size(); ++n) {
      missing[static_cast<std::size_t>(n)] = edges_.incoming(n).size();
      if (edges_.incoming(n).empty()) {
        ready.push(n);
      }
    }
    position_.resize(dag_.nodes.size());
    for (int position = 0; !ready.empty(); ++position) {
      const int n = ready.top();
      ready.pop();
      position_[static_cast<std::size_t>(n)] = position;
      for (const int e : edges_.outgoing(n)) {
        const int next = dag_.edges[static_cast<std::size_t>(e)].to;
        if (--missing[static_cast<std::size_t>(next)] == 0) {
          ready.push(next);
        }
      }
    }
  }

  const TrainingDag& dag_;
  const DagAdjacency& edges_;
  std::vector<int> position_;
};

/// The ready nodes of a rank list. Successors are counted only if there is a choice.
class ReadyNodes {
 public:
  ReadyNodes(Successors& successors, Positions& positions)
      : successors_(successors), positions_(positions) {}

  void add(int node) { nodes_.push_back(node); }
  [[nodiscard]] bool empty() const { return nodes_.empty(); }

  int take() {
    auto best = nodes_.begin();
    if (nodes_.size() > 1) {
      best = std::ranges::min_element(
          nodes_, {}, [&](int n) { return std::pair(-successors_.of(n), positions_.of(n)); });
    }
    const int node = *best;
    nodes_.erase(best);
    return node;
  }

 private:
  Successors& successors_;
  Positions& positions_;
  std::vector<int> nodes_;
};

/// Names a collective that several rank lists do together: a sum over the copies of a bucket, or
/// over a tie.
using SharedName = std::pair<int, int>;  // bucket, tie

/// Returns the nodes of each collective of several rank lists.
std::map<SharedName, std::vector<int>> shared_collectives(const TrainingDag& dag) {
  std::map<SharedName, std::vector<int>> shared;
  for (int n = 0; n < dag.size(); ++n) {
    const DagNode& node = dag.node(n);
    if (is_collective(node.kind) && node.microbatch.value == kNone) {
      shared[{node.bucket, node.tie}].push_back(n);
    }
  }
  std::erase_if(shared, [](const auto& entry) { return entry.second.size() < 2; });
  return shared;
}

/// Returns an order of the shared collectives in which they can all be done, as their places in it.
std::map<SharedName, int> global_order(const TrainingDag& dag,
                                       const DagAdjacency& edges,
                                       const std::map<SharedName, std::vector<int>>& shared) {
  std::map<int, SharedName> name_of;
  std::map<SharedName, std::size_t> unready;
  for (const auto& [name, nodes] : shared) {
    unready[name] = nodes.size();
    for (const int n : nodes) {
      name_of[n] = name;
    }
  }
  std::map<SharedName, int> order;
  std::vector<std::size_t> missing(dag.nodes.size());
  std::vector<int> queue;
  const auto reach = [&](int n) {
    const auto name = name_of.find(n);
    if (name == name_of.end()) {
      queue.push_back(n);
    } else if (--unready[name->second] == 0) {  // all members have come to it
      const int place = static_cast<int>(order.size());
      order[name->second] = place;
      const std::vector<int>& nodes = shared.at(name->second);
      queue.insert(queue.end(), nodes.begin(), nodes.end());
    }
  };
  for (int n = 0; n < dag.size(); ++n) {
    const bool receives = dag.node(n).kind == DagKind::Receive;
    missing[static_cast<std::size_t>(n)] = edges.incoming(n).size() + (receives ? 1 : 0);
    if (missing[static_cast<std::size_t>(n)] == 0) {
      reach(n);
    }
  }
  for (std::size_t i = 0; i < queue.size(); ++i) {
    const int n = queue[i];
    const auto pass = [&](int next) {
      if (--missing[static_cast<std::size_t>(next)] == 0) {
        reach(next);
      }
    };
    for (const int e : edges.outgoing(n)) {
      pass(dag.edges[static_cast<std::size_t>(e)].to);
    }
    if (dag.node(n).kind == DagKind::Send) {
      pass(dag.node(n).peer);
    }
  }
  return order;
}

/// Puts the shared collectives of each stream in their global order.
void align(const TrainingDag& dag, const DagAdjacency& edges, std::vector<StreamOrder>& orders) {
  const auto shared = shared_collectives(dag);
  if (shared.empty()) {
    return;
  }
  const auto global = global_order(dag, edges, shared);
  for (StreamOrder& order : orders) {
    for (std::vector<int>& stream : order.streams) {
      std::vector<std::size_t> positions;
      std::vector<int> nodes;
      for (std::size_t i = 0; i < stream.size(); ++i) {
        const DagNode& node = dag.node(stream[i]);
        if (is_collective(node.kind) && global.contains({node.bucket, node.tie})) {
          positions.push_back(i);
          nodes.push_back(stream[i]);
        }
      }
      std::ranges::sort(nodes, {}, [&](int n) {
        return global.at({dag.node(n).bucket, dag.node(n).tie});
      });
      for (std::size_t i = 0; i < positions.size(); ++i) {
        stream[positions[i]] = nodes[i];
      }
    }
  }
}

}  // namespace

std::vector<StreamOrder> order_streams(TrainingDag& dag) {
  const DagAdjacency edges(dag);
  Successors successors(dag, edges);
  Positions positions(dag, edges);
  std::vector<int> missing(dag.nodes.size());
  std::vector<ReadyNodes> ready(dag.places.size(), ReadyNodes(successors, positions));
  for (int n = 0; n < dag.size(); ++n) {
    if (!is_ordered(dag.node(n))) {
      continue;
    }
    for (const int e : edges.incoming(n)) {
      const int from = dag.edges[static_cast<std::size_t>(e)].from;
      missing[static_cast<std::size_t>(n)] += is_ordered(dag.node(from)) ? 1 : 0;
    }
    if (missing[static_cast<std::size_t>(n)] == 0) {
      ready[static_cast<std::size_t>(dag.node(n).place)].add(n);
    }
  }
  std::vector<StreamOrder> orders(dag.places.size());
  for (std::size_t p = 0; p < dag.places.size(); ++p) {
    orders[p].streams.resize(dag.streams.size());
    while (!ready[p].empty()) {
      const int n = ready[p].take();
      orders[p].streams[static_cast<std::size_t>(dag.node(n).stream)].push_back(n);
      for (const int e : edges.outgoing(n)) {
        const int next = dag.edges[static_cast<std::size_t>(e)].to;
        if (is_ordered(dag.node(next)) && --missing[static_cast<std::size_t>(next)] == 0) {
          ready[p].add(next);
        }
      }
    }
  }
  align(dag, edges, orders);
  for (const StreamOrder& order : orders) {
    for (const std::vector<int>& stream : order.streams) {
      for (std::size_t i = 1; i < stream.size(); ++i) {
        dag.connect(stream[i - 1], stream[i], /*data=*/false);
      }
    }
  }
  return orders;
}

void delay_receives(TrainingDag& dag, const std::vector<StreamOrder>& orders) {
  std::vector<int> before(dag.nodes.size(), kNone);
  for (const StreamOrder& order : orders) {
    const std::vector<int>& compute = order.streams[kComputeStream];
    for (std::size_t i = 1; i < compute.size(); ++i) {
      before[static_cast<std::size_t>(compute[i])] = compute[i - 1];
    }
  }
  const std::size_t edges = dag.edges.size();
  for (std::size_t e = 0; e < edges; ++e) {
    const auto [from, to] = std::pair(dag.edges[e].from, dag.edges[e].to);
    const int earlier = before[static_cast<std::size_t>(to)];
    if (dag.node(from).kind == DagKind::Receive && earlier != kNone) {
      dag.connect(earlier, from, /*data=*/false);
    }
  }
}

}  // namespace stagecraft
