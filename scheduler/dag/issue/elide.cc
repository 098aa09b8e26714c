#include "stagecraft/scheduler/dag/issue/elide.h"

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/dag/remove_nodes.h"

namespace stagecraft {
namespace {

/// Holds the nodes that serve a computing node: they gather its parameters and scatter its
/// gradients.
struct Servants {
  int gather = kNone, scatter = kNone;
};

bool makes_gradients(DagKind kind) {
  return kind == DagKind::Backward || kind == DagKind::Weight;
}

class Elision {
 public:
  explicit Elision(TrainingDag& dag) : dag_(dag), servants_(dag.nodes.size()) {
    for (const DagEdge& edge : dag.edges) {
      linked_.emplace(edge.from, edge.to);
      const DagNode& from = dag.node(edge.from);
      const DagNode& to = dag.node(edge.to);
      if (from.kind == DagKind::AllGather && computes(to.kind)) {
        servants_[static_cast<std::size_t>(edge.to)].gather = edge.from;
      } else if (to.kind == DagKind::ReduceScatter && makes_gradients(from.kind)) {
        servants_[static_cast<std::size_t>(edge.from)].scatter = edge.to;
      }
    }
  }

  void run(const std::vector<int>& compute) {
    std::map<int, int> last_of_chain, last_scatter;  // by bucket
    std::vector<int> chains;                         // that gather: the last node of each
    std::vector<int> scatters;                       // of chains that make gradients
    int before = kNone;
    for (const int n : compute) {
      const Servants& own = servants(n);
      const int bucket = bucket_of(own);
      const bool goes_on = before != kNone && bucket != kNone &&
                           bucket_of(servants(before)) == bucket && linked_.contains({before, n});
      const Servants earlier = before == kNone ? Servants() : servants(before);
      if (own.gather != kNone && own.gather != earlier.gather) {
        if (goes_on) {
          dead_.insert(own.gather);
        } else {
          if (const auto last = last_of_chain.find(bucket); last != last_of_chain.end()) {
            new_edges_.emplace(last->second, own.gather);
          }
          if (chains.size() > 1) {
            new_edges_.emplace(chains[chains.size() - 2], own.gather);
          }
          chains.push_back(n);
        }
      }
      if (own.gather != kNone) {
        chains.back() = n;
      }
      if (own.scatter != kNone && own.scatter != earlier.scatter) {
        if (goes_on && earlier.scatter != kNone) {
          dead_.insert(earlier.scatter);
          moved_.emplace(before, own.scatter);
          scatters.back() = own.scatter;
        } else {
          if (const auto last = last_scatter.find(bucket); last != last_scatter.end()) {
            new_edges_.emplace(last->second, n);
          }
          if (scatters.size() > 1) {
            new_edges_.emplace(scatters[scatters.size() - 2], n);
          }
          scatters.push_back(own.scatter);
        }
        last_scatter[bucket] = own.scatter;
      }
      if (bucket != kNone) {
        last_of_chain[bucket] = n;
      }
      before = n;
    }
  }

  void finish() {
    for (const auto& [from, to] : moved_) {
      dag_.connect(from, to);
    }
    for (const auto& [from, to] : new_edges_) {
      dag_.connect(from, to, /*data=*/false);
    }
    remove_nodes(dag_, dead_);
  }

 private:
  [[nodiscard]] const Servants& servants(int n) const {
    return servants_[static_cast<std::size_t>(n)];
  }
  [[nodiscard]] int bucket_of(const Servants& of) const {
    const int servant = of.gather != kNone ? of.gather : of.scatter;
    return servant == kNone ? kNone : dag_.node(servant).bucket;
  }

  TrainingDag& dag_;
  std::vector<Servants> servants_;
  std::set<std::pair<int, int>> linked_, moved_, new_edges_;
  std::set<int> dead_;
};

}  // namespace

void elide(TrainingDag& dag) {
  TrainingDag ordered = dag;
  const std::vector<StreamOrder> orders = order_streams(ordered);
  for (const StreamOrder& order : orders) {
    const std::vector<int>& compute = order.streams[kComputeStream];
    for (std::size_t i = 1; i < compute.size(); ++i) {
      dag.connect(compute[i - 1], compute[i], /*data=*/false);
    }
  }
  Elision elision(dag);
  for (const StreamOrder& order : orders) {
    elision.run(order.streams[kComputeStream]);
  }
  elision.finish();
}

}  // namespace stagecraft
