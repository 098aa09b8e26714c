#include "stagecraft/scheduler/dag/issue/elide.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/dag/issue/stream_order.h"
#include "stagecraft/scheduler/dag/remove_nodes.h"

namespace stagecraft {
namespace {

/// A chain of computing nodes that one collective serves, in the end.
struct Chain {
  int collective = kNone;
  int last = kNone;  // node
  int missing = 0;   // nodes that still follow
};

/// The chains of one rank list: those of gathers, or those of scatters.
class Chains {
 public:
  /// Returns the last chain of the bucket if the node goes on with it; null if it begins another.
  Chain* goes_on(int bucket, bool is_neighbor) {
    Chain* const last = last_of(bucket);
    return last != nullptr && (is_neighbor || last->missing > 0) ? last : nullptr;
  }
  Chain* last_of(int bucket) {
    const auto found = of_bucket_.find(bucket);
    return found == of_bucket_.end() ? nullptr : &all_[found->second];
  }
  /// Returns the last but one of the chains that do not end with this node, if it has ended.
  Chain* last_but_one(int node) {
    int found = 0;
    for (std::size_t c = all_.size(); c-- > 0;) {
      if (all_[c].last != node && ++found == 2) {
        return all_[c].missing == 0 ? &all_[c] : nullptr;
      }
    }
    return nullptr;
  }
  Chain& begin(int bucket, int collective) {
    of_bucket_[bucket] = all_.size();
    return all_.emplace_back(Chain{.collective = collective});
  }
  [[nodiscard]] const std::vector<Chain>& all() const { return all_; }

 private:
  std::vector<Chain> all_;
  std::map<int, std::size_t> of_bucket_;
};

class Elision {
 public:
  explicit Elision(TrainingDag& dag)
      : dag_(dag),
        gathers_(dag.nodes.size()),
        scatters_(dag.nodes.size()),
        served_(dag.nodes.size()) {
    for (const DagEdge& edge : dag.edges) {
      const DagKind from = dag.node(edge.from).kind;
      const DagKind to = dag.node(edge.to).kind;
      if (from == DagKind::AllGather && computes(to)) {
        serve(gathers_, edge.to, edge.from);
      } else if (to == DagKind::ReduceScatter && computes(from)) {
        serve(scatters_, edge.from, edge.to);
      }
    }
  }

  void run(const std::vector<int>& compute) {
    Chains gathers, scatters;
    int before = kNone;
    for (const int n : compute) {
      for (const int gather : of(gathers_, n)) {
        add(Kind::Gather, gathers, n, gather, is_neighbor(gathers_, before, gather));
      }
      for (const int scatter : of(scatters_, n)) {
        add(Kind::Scatter, scatters, n, scatter, is_neighbor(scatters_, before, scatter));
      }
      before = n;
    }
    for (const Chain& chain : scatters.all()) {
      if (!contains(of(scatters_, chain.last), chain.collective)) {
        dag_.connect(chain.last, chain.collective);
      }
    }
  }

  void finish() {
    for (const auto& [from, to] : new_edges_) {
      dag_.connect(from, to, /*data=*/false);
    }
    remove_nodes(dag_, dead_);
  }

 private:
  using ByNode = std::vector<std::vector<int>>;

  static const std::vector<int>& of(const ByNode& collectives, int n) {
    return collectives[static_cast<std::size_t>(n)];
  }
  static bool contains(const std::vector<int>& all, int one) {
    return std::ranges::find(all, one) != all.end();
  }

  void serve(ByNode& collectives, int n, int collective) {
    std::vector<int>& known = collectives[static_cast<std::size_t>(n)];
    if (!contains(known, collective)) {
      ++served_[static_cast<std::size_t>(collective)];
      known.push_back(collective);
    }
  }

  [[nodiscard]] bool is_neighbor(const ByNode& collectives, int before, int collective) const {
    return before != kNone && std::ranges::any_of(of(collectives, before), [&](int other) {
             return dag_.node(other).bucket == dag_.node(collective).bucket;
           });
  }

  /// Returns the nodes that a collective brings to a chain, when the first of them comes.
  int new_nodes(int collective) {
    return seen_.insert(collective).second ? served_[static_cast<std::size_t>(collective)] : 0;
  }

  enum class Kind { Gather, Scatter };

  /// Adds a node to its chain. The first gather of a chain stays, and the last scatter.
  void add(Kind kind, Chains& chains, int n, int collective, bool is_neighbor) {
    const bool gathers = kind == Kind::Gather;
    const int nodes = new_nodes(collective);
    const int bucket = dag_.node(collective).bucket;
    Chain* chain = chains.goes_on(bucket, is_neighbor);
    if (chain != nullptr && nodes > 0) {
      dead_.insert(gathers ? collective : std::exchange(chain->collective, collective));
    } else if (chain == nullptr) {
      for (const Chain* earlier : {chains.last_but_one(n), chains.last_of(bucket)}) {
        if (earlier != nullptr) {
          new_edges_.emplace(gathers ? earlier->last : earlier->collective,
                             gathers ? collective : n);
        }
      }
      chain = &chains.begin(bucket, collective);
    }
    chain->missing += nodes - 1;
    chain->last = n;
  }

  TrainingDag& dag_;
  ByNode gathers_, scatters_;  // that serve a computing node
  std::vector<int> served_;    // by collective: its nodes
  std::set<int> seen_;         // collectives
  std::set<std::pair<int, int>> new_edges_;
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
