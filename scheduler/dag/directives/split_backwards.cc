#include <map>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

/// Halves says where an order names the two halves of one backward.
struct Halves {
  struct Mention {
    std::size_t number = 0;  ///< of the directive
    std::size_t group = 0;
  };
  std::vector<Mention> input, weight, whole;
};

using TaskName = std::pair<int, int>;  // stage and microbatch

std::map<TaskName, Halves> mentions(const std::vector<Numbered<OrderDirective>>& orders,
                                    StrategyFaults& faults) {
  bool any = false;
  std::map<TaskName, Halves> found;
  for (const auto& [number, directive] : orders) {
    for (std::size_t g = 0; g < directive->groups.size(); ++g) {
      for (const Filter& filter : directive->groups[g]) {
        if (!filter.pass || *filter.pass == Pass::F) {
          continue;
        }
        const auto stage = filter.number_of(kStageTag);
        const auto microbatch = filter.number_of(kMicrobatchTag);
        const bool halves = *filter.pass != Pass::B;
        if (!stage || !microbatch || filter.tags.size() != 2) {
          if (halves) {
            faults.note(number,
                        fmt::format("{} names halves of several backwards: name each by {} and {}",
                                    to_string(filter),
                                    kStageTag,
                                    kMicrobatchTag));
          }
          continue;
        }
        any = any || halves;
        Halves& of = found[{*stage, *microbatch}];
        (*filter.pass == Pass::B    ? of.whole
         : *filter.pass == Pass::BI ? of.input
                                    : of.weight)
            .push_back({number, g});
      }
    }
  }
  return any ? found : std::map<TaskName, Halves>();
}

/// Returns what is wrong with the mentions of one backward; empty for sound ones.
std::string fault_of(const Halves& halves) {
  if (halves.input.empty() && halves.weight.empty()) {
    return {};
  }
  if (!halves.whole.empty()) {
    return "is named as a whole and in halves";
  }
  if (halves.input.size() != 1 || halves.weight.size() != 1) {
    return fmt::format(
        "needs one BI and one BW, found {} and {}", halves.input.size(), halves.weight.size());
  }
  if (halves.input[0].number != halves.weight[0].number) {
    return "has its halves in two orders; they run on the same ranks";
  }
  return halves.input[0].group > halves.weight[0].group ? "has its BW before its BI"
                                                        : std::string();
}

}  // namespace

void split_backwards(TrainingDag& dag,
                     const std::vector<Numbered<OrderDirective>>& orders,
                     StrategyFaults& faults) {
  std::set<TaskName> halved;
  for (const auto& [task, halves] : mentions(orders, faults)) {
    if (const std::string fault = fault_of(halves); !fault.empty()) {
      const auto& mention = !halves.input.empty() ? halves.input[0] : halves.weight[0];
      faults.note(mention.number,
                  fmt::format("the backward {{PP:{},MB:{}}} {}", task.first, task.second, fault));
    } else if (!halves.input.empty()) {
      halved.insert(task);
    }
  }
  if (halved.empty()) {
    return;
  }
  std::vector<int> weight_of(dag.nodes.size(), kNone);
  const int before = dag.size();
  for (int n = 0; n < before; ++n) {
    const DagNode node = dag.node(n);
    if (node.kind != DagKind::Backward ||
        !halved.contains({node.stage.value, node.microbatch.value})) {
      continue;
    }
    dag.node(n).kind = DagKind::Input;
    DagNode weight = node;
    weight.kind = DagKind::Weight;
    weight_of[static_cast<std::size_t>(n)] = dag.add(weight);
  }
  const auto half_of = [&](int n) {
    return n < before ? weight_of[static_cast<std::size_t>(n)] : kNone;
  };
  const std::size_t edges = dag.edges.size();
  for (std::size_t e = 0; e < edges; ++e) {
    const DagEdge edge = dag.edges[e];
    const int from = half_of(edge.from);
    const int to = half_of(edge.to);
    const bool to_update = dag.node(edge.to).kind == DagKind::Update;
    if (from != kNone && to_update) {
      dag.edges[e].from = from;
    } else if (to != kNone && dag.is_surplus(dag.node(edge.to)) && edge.data) {
      dag.edges[e].to = to;  // the weight half does all
      if (from != kNone && edge.tensor == EdgeId(kNone)) {
        dag.edges[e].from = from;
      }
    } else if (from != kNone && to != kNone && edge.tensor == EdgeId(kNone)) {
      // Weight halves of a stage's chunks keep the order of its input halves.
      dag.connect(from, to, /*data=*/false);
    }
  }
  for (int n = 0; n < before; ++n) {
    if (half_of(n) != kNone) {
      const bool surplus = dag.is_surplus(dag.node(n)) || dag.is_surplus(dag.node(half_of(n)));
      dag.connect(n, half_of(n), /*data=*/!surplus);
    }
  }
}

}  // namespace stagecraft
