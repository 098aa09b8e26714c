#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

#include <set>

namespace stagecraft::graphpipe {

Neighbors neighbors_of(int operators, const Edges& edges) {
  Neighbors made{std::vector<std::vector<int>>(at(operators)),
                 std::vector<std::vector<int>>(at(operators))};
  for (const auto& [from, to] : edges) {
    made.succs[at(from)].push_back(to);
    made.preds[at(to)].push_back(from);
  }
  return made;
}

Edges edges_between(const Edges& edges, const std::vector<int>& group) {
  std::set<std::pair<int, int>> found;
  for (const auto& [from, to] : edges) {
    if (group[at(from)] != group[at(to)]) {
      found.emplace(group[at(from)], group[at(to)]);
    }
  }
  return {found.begin(), found.end()};
}

}  // namespace stagecraft::graphpipe
