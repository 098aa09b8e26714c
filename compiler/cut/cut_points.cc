#include "stagecraft/compiler/cut/cut_points.h"

#include <algorithm>
#include <map>
#include <set>

namespace stagecraft {
namespace {

/// Alias sets whose memory begins with no operator.
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
  std::size_t first = 0;
  std::size_t last = 0;
  bool written = false;
  std::size_t last_write = 0;
};

std::map<int, Touched> touched_sets(const Graph& graph) {
  std::map<int, Touched> sets;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    const auto touch = [&](ValueId value) {
      if (value != kNoValue) {
        sets.try_emplace(graph.at(value).alias_set, Touched{.first = n}).first->second.last = n;
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

std::vector<std::size_t> cut_points(const Graph& graph) {
  const std::set<int> foreign = foreign_sets(graph);
  std::vector<int> inside(graph.nodes.size() + 1, 0);  // +1 where a group opens, -1 where it closes
  for (const auto& [set, touched] : touched_sets(graph)) {
    if (touched.written) {
      ++inside[touched.first + 1];
      --inside[(foreign.contains(set) ? touched.last : touched.last_write) + 1];
    }
  }
  std::vector<std::size_t> points;
  int open = 0;
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    open += inside[n];
    if (open == 0) {
      points.push_back(n);
    }
  }
  return points;
}

}  // namespace stagecraft
