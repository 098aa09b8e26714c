#include "stagecraft/scheduler/dag/issue/stream_order.h"

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "stagecraft/scheduler/dag/issue/rendezvous.h"

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

/// The ready nodes of a stream of a rank list. Successors are counted only if there is a choice.
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

/// Lets the streams of all rank lists take their nodes in turns.
class Turns {
 public:
  explicit Turns(const TrainingDag& dag)
      : dag_(dag),
        edges_(dag),
        rendezvous_(dag),
        successors_(dag, edges_),
        positions_(dag, edges_),
        missing_(dag.nodes.size()),
        ready_(dag.places.size() * dag.streams.size(), ReadyNodes(successors_, positions_)),
        orders_(dag.places.size()) {
    for (StreamOrder& order : orders_) {
      order.streams.resize(dag.streams.size());
    }
    for (int n = 0; n < dag.size(); ++n) {
      missing_[static_cast<std::size_t>(rendezvous_.first(n))] +=
          static_cast<int>(edges_.incoming(n).size());
    }
  }

  std::vector<StreamOrder> run() {
    for (int n = 0; n < dag_.size(); ++n) {
      if (rendezvous_.first(n) == n && missing_[static_cast<std::size_t>(n)] == 0) {
        become_ready(n);
      }
    }
    for (bool moved = true; moved;) {
      moved = false;
      taken_.clear();
      for (ReadyNodes& ready : ready_) {
        if (!ready.empty()) {
          taken_.push_back(ready.take());
          append(taken_.back());
          moved = true;
        }
      }
      for (const int n : taken_) {
        pass(n);
      }
      for (const int n : std::exchange(arrived_, {})) {
        pass(n);
      }
    }
    return std::move(orders_);
  }

 private:
  void become_ready(int n) {
    if (is_ordered(dag_.node(n))) {
      const DagNode& node = dag_.node(n);
      ready_[static_cast<std::size_t>(node.place) * dag_.streams.size() +
             static_cast<std::size_t>(node.stream)]
          .add(n);
    } else {
      arrived_.push_back(n);  // a transfer takes a turn
    }
  }

  void append(int n) {
    for (const int member : rendezvous_.members(n)) {
      const DagNode& node = dag_.node(member);
      orders_[static_cast<std::size_t>(node.place)]
          .streams[static_cast<std::size_t>(node.stream)]
          .push_back(member);
    }
  }

  void pass(int n) {
    for (const int member : rendezvous_.members(n)) {
      for (const int e : edges_.outgoing(member)) {
        const int next = rendezvous_.first(dag_.edges[static_cast<std::size_t>(e)].to);
        if (--missing_[static_cast<std::size_t>(next)] == 0) {
          become_ready(next);
        }
      }
    }
  }

  const TrainingDag& dag_;
  const DagAdjacency edges_;
  const Rendezvous rendezvous_;
  Successors successors_;
  Positions positions_;
  std::vector<int> missing_;
  std::vector<ReadyNodes> ready_;  // by rank list, then stream
  std::vector<StreamOrder> orders_;
  std::vector<int> arrived_, taken_;
};

}  // namespace

std::vector<StreamOrder> order_streams(TrainingDag& dag) {
  std::vector<StreamOrder> orders = Turns(dag).run();
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
