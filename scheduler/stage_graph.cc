#include "stagecraft/scheduler/stage_graph.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

void insert_once(std::vector<StageId>& list, StageId stage) {
  const auto at = std::ranges::lower_bound(list, stage);
  if (at == list.end() || *at != stage) {
    list.insert(at, stage);
  }
}

void require_stage(int stage, int stages, const char* what) {
  if (stage < 0 || stage >= stages) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} names stage {}, but there are {} stages (0 to {}); correct the "
                            "number or declare more stages",
                            what,
                            stage,
                            stages,
                            stages - 1));
  }
}

}  // namespace

StageGraph StageGraph::chain(int stages) {
  std::vector<Edge> edges;
  for (int s = 0; s + 1 < stages; ++s) {
    edges.emplace_back(s, s + 1);
  }
  return from_edges(stages, edges);
}

StageGraph StageGraph::from_edges(int stages, const std::vector<Edge>& edges) {
  if (stages < 0) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a stage graph needs 0 or more stages, got {}", stages));
  }
  StageGraph graph;
  graph.nodes_.resize(static_cast<std::size_t>(stages));
  for (int s = 0; s < stages; ++s) {
    graph.nodes_[static_cast<std::size_t>(s)].name = fmt::format("stage {}", s);
  }
  for (const auto& [from, to] : edges) {
    require_stage(from, stages, "an edge");
    require_stage(to, stages, "an edge");
    insert_once(graph.nodes_[static_cast<std::size_t>(from)].succs, StageId(to));
    insert_once(graph.nodes_[static_cast<std::size_t>(to)].preds, StageId(from));
  }
  for (Node& node : graph.nodes_) {
    node.needs_input_grad = !node.preds.empty();
  }
  return graph;
}

std::vector<StageGraph::Edge> StageGraph::edges() const {
  std::vector<Edge> all;
  for (int s = 0; s < size(); ++s) {
    for (const StageId to : succs(StageId(s))) {
      all.emplace_back(s, to.value);
    }
  }
  return all;
}

bool StageGraph::is_chain() const {
  for (int s = 0; s < size(); ++s) {
    const auto next = succs(StageId(s));
    const bool last = s + 1 == size();
    if (last ? !next.empty() : (next.size() != 1 || next[0].value != s + 1)) {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<StageId>> StageGraph::topological_order() const {
  std::vector<std::size_t> missing(nodes_.size());
  std::vector<StageId> order;
  order.reserve(nodes_.size());
  for (int s = 0; s < size(); ++s) {
    missing[static_cast<std::size_t>(s)] = preds(StageId(s)).size();
    if (missing[static_cast<std::size_t>(s)] == 0) {
      order.emplace_back(s);
    }
  }
  for (std::size_t next = 0; next < order.size(); ++next) {
    for (const StageId to : succs(order[next])) {
      if (--missing[to.index()] == 0) {
        order.push_back(to);
      }
    }
  }
  if (order.size() != nodes_.size()) {
    return std::nullopt;
  }
  return order;
}

std::vector<StageId> StageGraph::find_cycle() const {
  const auto order = topological_order();
  if (order) {
    return {};
  }
  // Peel what no cycle feeds; from any stage left, walking back to a producer that is also left
  // must repeat.
  std::vector<std::size_t> missing(nodes_.size());
  std::vector<StageId> ready;
  for (int s = 0; s < size(); ++s) {
    missing[static_cast<std::size_t>(s)] = preds(StageId(s)).size();
    if (missing[static_cast<std::size_t>(s)] == 0) {
      ready.emplace_back(s);
    }
  }
  while (!ready.empty()) {
    const StageId from = ready.back();
    ready.pop_back();
    for (const StageId to : succs(from)) {
      if (--missing[to.index()] == 0) {
        ready.push_back(to);
      }
    }
  }
  StageId at(std::ranges::find_if(missing, [](std::size_t n) { return n > 0; }) - missing.begin());
  std::vector<int> visited(nodes_.size(), -1);
  std::vector<StageId> walk;
  while (visited[at.index()] < 0) {
    visited[at.index()] = static_cast<int>(walk.size());
    walk.push_back(at);
    at = *std::ranges::find_if(preds(at), [&](StageId p) { return missing[p.index()] > 0; });
  }
  std::vector<StageId> cycle(walk.begin() + visited[at.index()], walk.end());
  std::ranges::reverse(cycle);
  std::rotate(cycle.begin(), std::ranges::min_element(cycle), cycle.end());
  return cycle;
}

int StageGraph::depth() const {
  const auto order = topological_order();
  SC_CHECK(order.has_value(), "depth() of a stage graph with a cycle");
  std::vector<int> depth_of(nodes_.size(), 1);
  int deepest = 0;
  for (const StageId s : *order) {
    for (const StageId p : preds(s)) {
      depth_of[s.index()] = std::max(depth_of[s.index()], depth_of[p.index()] + 1);
    }
    deepest = std::max(deepest, depth_of[s.index()]);
  }
  return deepest;
}

void StageGraph::set_replica_pairs(std::vector<Edge> pairs) {
  for (const auto& [first, second] : pairs) {
    require_stage(first, size(), "a replica pair");
    require_stage(second, size(), "a replica pair");
    if (first == second) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("stage {} is declared a replica of itself; name two different stages",
                              first));
    }
  }
  // A pair's second stage is one copy further than its first, so sorted pairs number whole chains
  // of copies.
  std::ranges::sort(pairs);
  replicas_ = 1;
  for (Node& node : nodes_) {
    node.replica = 0;
  }
  for (const auto& [first, second] : pairs) {
    const int replica = nodes_[static_cast<std::size_t>(first)].replica + 1;
    nodes_[static_cast<std::size_t>(second)].replica = replica;
    replicas_ = std::max(replicas_, replica + 1);
  }
  replica_pairs_ = std::move(pairs);
}

}  // namespace stagecraft
