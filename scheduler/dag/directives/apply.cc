#include "stagecraft/scheduler/dag/directives/apply.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/dag/build.h"
#include "stagecraft/scheduler/dag/directives/directives.h"
#include "stagecraft/scheduler/dag/directives/match.h"
#include "stagecraft/scheduler/dag/directives/strategy_faults.h"

namespace stagecraft {
namespace {

template <class D>
std::vector<Numbered<D>> all_of(const Strategy& strategy) {
  std::vector<Numbered<D>> found;
  for (std::size_t i = 0; i < strategy.directives().size(); ++i) {
    if (const auto* const directive = std::get_if<D>(&strategy.directives()[i])) {
      found.push_back({i, directive});
    }
  }
  return found;
}

/// Returns the orders without backwards, for a graph that has none.
std::vector<OrderDirective> forwards_of(const std::vector<Numbered<OrderDirective>>& orders) {
  std::vector<OrderDirective> kept;
  for (const auto& [number, directive] : orders) {
    OrderDirective& forwards = kept.emplace_back();
    for (const OrderDirective::Group& group : directive->groups) {
      OrderDirective::Group members;
      std::ranges::copy_if(group, std::back_inserter(members), [](const Filter& filter) {
        return !filter.pass || *filter.pass == Pass::F;
      });
      if (!members.empty()) {
        forwards.groups.push_back(std::move(members));
      }
    }
  }
  return kept;
}

void note_cycle(const TrainingDag& dag, StrategyFaults& faults) {
  constexpr std::size_t kShown = 12;
  std::vector<std::string> names;
  for (const int n : find_cycle(dag)) {
    names.push_back(to_string(dag, n));
  }
  if (names.empty()) {
    return;
  }
  const std::size_t count = names.size();
  names.resize(std::min(count, kShown));
  faults.note(
      fmt::format("the orders and the data close a cycle of {}: {}{}; exchange two of "
                  "them in their order",
                  count_text(count, "node"),
                  fmt::join(names, ", "),
                  count > kShown ? ", ..." : ""));
}

void note_size(const DagSource& source, int microbatches, StrategyFaults& faults) {
  std::int64_t chunks = 0;
  for (const auto& of_stage : source.chunks) {
    chunks += std::ssize(of_stage);
  }
  if (chunks * microbatches > kMaxForwards) {
    faults.note(
        fmt::format("a step of {} has {} forwards, at most {} are laid out: split it "
                    "into fewer",
                    count_text(microbatches, "microbatch"),
                    chunks * microbatches,
                    kMaxForwards));
  }
}

}  // namespace

TrainingDag apply(const Strategy& strategy, DagSource source, bool training) {
  StrategyFaults faults(strategy);
  auto orders = all_of<OrderDirective>(strategy);
  const std::vector<OrderDirective> forwards =
      training ? std::vector<OrderDirective>() : forwards_of(orders);
  for (std::size_t i = 0; i < forwards.size(); ++i) {
    orders[i].directive = &forwards[i];
  }
  const auto places = all_of<PlaceDirective>(strategy);
  const int microbatches = split(all_of<SplitDirective>(strategy), faults);
  note_size(source, microbatches, faults);
  faults.refuse_if_any();  // all else depends on the number of microbatches
  TrainingDag dag = build_dag(std::move(source), microbatches, training);
  split_backwards(dag, orders, faults);
  const DagMatcher matcher(dag);
  place(dag, matcher, places, faults);
  if (faults.none()) {
    add_transfers(dag, places);
  }
  const DividedChunks divided =
      training ? divided_chunks(dag, matcher, all_of<ShardDirective>(strategy), faults)
               : DividedChunks();  // an evaluation gathers the weights of all
  replicate(dag, matcher, all_of<ReplicateDirective>(strategy), divided, faults);
  shard(dag, divided);
  add_ties(dag, faults);
  order(dag, matcher, orders, faults);
  faults.refuse_if_any();
  if (training) {
    add_votes(dag);
  }
  note_cycle(dag, faults);
  faults.refuse_if_any();
  return dag;
}

}  // namespace stagecraft
