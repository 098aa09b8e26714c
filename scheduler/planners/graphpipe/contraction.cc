#include "stagecraft/scheduler/planners/graphpipe/contraction.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>

namespace stagecraft::graphpipe {
namespace {

/// Pairs up operators; each is in one pair at most. Keeps GC-1: the condition of a pair stays true
/// after others have been merged.
std::vector<int> pair_up(const Edges& edges, std::span<const double> times, double cheap) {
  const Neighbors graph = neighbors_of(static_cast<int>(times.size()), edges);
  std::vector<int> group(times.size());
  std::iota(group.begin(), group.end(), 0);
  std::vector<char> taken(times.size());
  for (std::size_t op = 0; op < times.size(); ++op) {
    if (taken[op] != 0 || times[op] >= cheap) {
      continue;
    }
    int partner = -1;
    for (const std::vector<int>* beside : {&graph.succs[op], &graph.preds[op]}) {
      if (beside->size() == 1 && taken[at(beside->front())] == 0 &&
          (partner < 0 || times[at(beside->front())] < times[at(partner)])) {
        partner = beside->front();
      }
    }
    if (partner >= 0) {
      taken[op] = taken[at(partner)] = 1;
      group[op] = group[at(partner)] = std::min(static_cast<int>(op), partner);
    }
  }
  return group;
}

/// Numbers the groups so that producers come first; of several ready groups, the one with the
/// smallest operator comes first.
std::vector<int> order_of(const Edges& edges, const std::vector<int>& group) {
  const Neighbors graph = neighbors_of(static_cast<int>(group.size()), edges);
  std::vector<std::size_t> missing(group.size());
  std::priority_queue<int, std::vector<int>, std::greater<>> ready;
  for (std::size_t g = 0; g < group.size(); ++g) {
    missing[g] = graph.preds[g].size();
    if (group[g] == static_cast<int>(g) && missing[g] == 0) {
      ready.push(static_cast<int>(g));
    }
  }
  std::vector<int> name(group.size(), -1);
  for (int next = 0; !ready.empty(); ++next) {
    const int g = ready.top();
    ready.pop();
    name[at(g)] = next;
    for (const int consumer : graph.succs[at(g)]) {
      if (--missing[at(consumer)] == 0) {
        ready.push(consumer);
      }
    }
  }
  return name;
}

}  // namespace

Contraction contract(int operators,
                     const Edges& edges,
                     std::span<const double> times,
                     double limit) {
  const double cheap = limit * std::accumulate(times.begin(), times.end(), 0.0);
  Contraction made;
  for (int op = 0; op < operators; ++op) {
    made.members.push_back({op});
  }
  std::vector<int> each(at(operators));
  std::iota(each.begin(), each.end(), 0);
  made.edges = edges_between(edges, each);
  std::vector<double> time(times.begin(), times.end());
  while (true) {
    const std::vector<int> group = pair_up(made.edges, time, cheap);
    const Edges between = edges_between(made.edges, group);
    const std::vector<int> name = order_of(between, group);
    const auto groups = at(*std::ranges::max_element(name) + 1);
    if (groups == group.size()) {
      break;
    }
    Contraction next{std::vector<std::vector<int>>(groups), {}};
    std::vector<double> next_time(groups);
    for (std::size_t g = 0; g < group.size(); ++g) {
      const std::size_t to = at(name[at(group[g])]);
      next.members[to].insert(
          next.members[to].end(), made.members[g].begin(), made.members[g].end());
      next_time[to] += time[g];
    }
    for (const auto& [from, to] : between) {
      next.edges.emplace_back(name[at(from)], name[at(to)]);
    }
    made = std::move(next);
    time = std::move(next_time);
  }
  for (std::vector<int>& members : made.members) {
    std::ranges::sort(members);
  }
  std::ranges::sort(made.edges);
  return made;
}

}  // namespace stagecraft::graphpipe
