#include "stagecraft/compiler/cut/memory_groups.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace stagecraft {
namespace {

/// Returns the alias sets whose memory no operator makes.
std::set<int> foreign_sets(const Graph& graph) {
  std::set<int> foreign;
  for (const Value& value : graph.values) {
    if (value.kind != ValueKind::Computed) {
      foreign.insert(value.alias_set);
    }
  }
  return foreign;
}

struct Touched {
  std::vector<std::size_t> operators;
  bool written = false;
  std::size_t last_write = 0;
};

std::map<int, Touched> touched_sets(const Graph& graph) {
  std::map<int, Touched> sets;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto touch = [&](ValueId value) {
      if (value != kNoValue) {
        std::vector<std::size_t>& operators = sets[graph.at(value).alias_set].operators;
        if (operators.empty() || operators.back() != n) {
          operators.push_back(n);
        }
      }
    };
    std::ranges::for_each(reads_of(node), touch);
    std::ranges::for_each(node.results, touch);
    for (const ValueId value : node.writes) {
      touch(value);
      Touched& set = sets.at(graph.at(value).alias_set);
      set.written = true;
      set.last_write = n;
    }
  }
  return sets;
}

}  // namespace

std::vector<MemoryGroup> memory_groups(const Graph& graph) {
  const std::set<int> foreign = foreign_sets(graph);
  std::vector<MemoryGroup> groups;
  for (auto& [set, touched] : touched_sets(graph)) {
    if (!touched.written) {
      continue;
    }
    MemoryGroup group{
        .alias_set = set, .operators = touched.operators, .foreign = foreign.contains(set)};
    if (!group.foreign) {
      std::erase_if(group.operators,
                    [&, last = touched.last_write](std::size_t n) { return n > last; });
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

}  // namespace stagecraft
