#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

/// Ends holds the nodes with which a set of nodes begins and ends.
struct Ends {
  std::vector<int> sources, sinks;
};

class Ordering {
 public:
  Ordering(TrainingDag& dag, const DagMatcher& matcher, StrategyFaults& faults)
      : dag_(dag), matcher_(matcher), faults_(faults), edges_(dag), in_set_(dag.nodes.size()) {}

  void run(std::size_t number, const OrderDirective& directive) {
    std::set<int> places;
    std::vector<int> before;  // sinks of the group before
    for (const OrderDirective::Group& group : directive.groups) {
      const int overlap = group.size() > 1 ? groups_++ : kNone;
      Ends all;
      for (const Filter& filter : group) {
        const Ends member = ends_of(number, filter, overlap, places);
        all.sources.insert(all.sources.end(), member.sources.begin(), member.sources.end());
        all.sinks.insert(all.sinks.end(), member.sinks.begin(), member.sinks.end());
      }
      for (const int from : before) {
        for (const int to : all.sources) {
          dag_.connect(from, to, /*data=*/false);
        }
      }
      before = std::move(all.sinks);
    }
    if (places.size() > 1) {
      std::vector<std::string> lists;
      for (const int place : places) {
        lists.push_back(place_text(dag_, place));
      }
      faults_.note(number,
                   fmt::format("it orders nodes on {}: an order is of one list of ranks",
                               fmt::join(lists, " and on ")));
    }
  }

 private:
  Ends ends_of(std::size_t number, const Filter& filter, int overlap, std::set<int>& places) {
    const std::vector<int> matched = matcher_.match(number, filter, faults_);
    if (matched.empty()) {
      return {};
    }
    for (const int n : matched) {
      in_set_[static_cast<std::size_t>(n)] = true;
      if (dag_.node(n).place != kNone) {
        places.insert(dag_.node(n).place);
      }
      dag_.node(n).overlap = overlap == kNone ? dag_.node(n).overlap : overlap;
      dag_.node(n).ordered = true;
    }
    Ends ends;
    for (const int n : matched) {
      if (std::ranges::none_of(edges_.incoming(n), [&](int e) { return within(edge(e).from); })) {
        ends.sources.push_back(n);
      }
      if (std::ranges::none_of(edges_.outgoing(n), [&](int e) { return within(edge(e).to); })) {
        ends.sinks.push_back(n);
      }
    }
    if (!is_one_task(matched)) {
      if (const int between = find_between(matched); between != kNone) {
        faults_.note(number,
                     fmt::format("{} is not contiguous: {} lies between its nodes",
                                 to_string(filter),
                                 to_string(dag_, between)));
      }
    }
    for (const int n : matched) {
      in_set_[static_cast<std::size_t>(n)] = false;
    }
    return ends;
  }

  [[nodiscard]] const DagEdge& edge(int e) const { return dag_.edges[static_cast<std::size_t>(e)]; }
  [[nodiscard]] bool within(int node) const { return in_set_[static_cast<std::size_t>(node)]; }

  /// Returns whether the nodes are the chunks of one task, which are contiguous.
  [[nodiscard]] bool is_one_task(const std::vector<int>& nodes) const {
    return std::ranges::all_of(
        nodes, [&](int n) { return dag_.node(n).task() == dag_.node(nodes.front()).task(); });
  }

  /// Returns a node outside of the set on a way from the set back into it; kNone if there is none.
  /// Transfers are followed to their other end.
  [[nodiscard]] int find_between(const std::vector<int>& set) const {
    std::vector<int> first(dag_.nodes.size(), kNone);  // the node at which the way left the set
    std::vector<int> open;
    const auto visit = [&](int node, int left_at) {
      if (first[static_cast<std::size_t>(node)] == kNone) {
        first[static_cast<std::size_t>(node)] = left_at;
        open.push_back(node);
      }
    };
    const auto each_successor = [&](int node, auto&& use) {
      for (const int e : edges_.outgoing(node)) {
        use(edge(e).to);
      }
      if (dag_.node(node).kind == DagKind::Send) {
        use(dag_.node(node).peer);
      }
    };
    for (const int n : set) {
      each_successor(n, [&](int next) {
        if (!within(next)) {
          visit(next, next);
        }
      });
    }
    while (!open.empty()) {
      const int node = open.back();
      open.pop_back();
      int found = kNone;
      each_successor(node, [&](int next) {
        if (within(next)) {
          found = node;
        } else {
          visit(next, first[static_cast<std::size_t>(node)]);
        }
      });
      if (found != kNone) {
        return computes(dag_.node(found).kind) ? found : first[static_cast<std::size_t>(found)];
      }
    }
    return kNone;
  }

  TrainingDag& dag_;
  const DagMatcher& matcher_;
  StrategyFaults& faults_;
  const DagAdjacency edges_;  // before any order
  std::vector<bool> in_set_;
  int groups_ = 0;
};

}  // namespace

void order(TrainingDag& dag,
           const DagMatcher& matcher,
           const std::vector<Numbered<OrderDirective>>& orders,
           StrategyFaults& faults) {
  Ordering ordering(dag, matcher, faults);
  for (const auto& [number, directive] : orders) {
    ordering.run(number, *directive);
  }
}

}  // namespace stagecraft
