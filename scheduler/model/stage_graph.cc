#include "stagecraft/scheduler/model/stage_graph.h"

#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "stagecraft/base/check.h"
#include "stagecraft/base/count_text.h"
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
                fmt::format("{} names stage {}, but there {} {} (0 to {}); correct the "
                            "number or declare more stages",
                            what,
                            stage,
                            stages == 1 ? "is" : "are",
                            count_text(stages, "stage"),
                            stages - 1));
  }
}

[[noreturn]] void refuse_circle(const std::map<int, int>& next) {
  constexpr int kTold = 16;
  const int begin = next.begin()->first;
  std::string circle = std::to_string(begin);
  int told = 1;
  for (int at = next.at(begin); at != begin && told < kTold; at = next.at(at), ++told) {
    circle += fmt::format(" = {}", at);
  }
  throw Error(Errc::ScheduleParameter,
              fmt::format("the replica pairs {} = {}{} form a circle; one of these stages is the "
                          "first copy, so drop the pair that names it second",
                          circle,
                          told == kTold ? "... = " : "",
                          begin));
}

/// Returns the pairs, chain by chain from the first copy on.
std::vector<StageGraph::Edge> in_chains(const std::vector<StageGraph::Edge>& pairs) {
  std::map<int, int> next, previous;
  for (const auto& [first, second] : pairs) {
    if (const auto [other, added] = next.emplace(first, second); !added) {
      if (other->second == second) {
        throw Error(Errc::ScheduleParameter,
                    fmt::format("the replica pair {}={} appears twice; keep one", first, second));
      }
      throw Error(
          Errc::ScheduleParameter,
          fmt::format("stage {0} is the first of two replica pairs, {0}={1} and {0}={2}; a "
                      "pair is a stage and its next copy, so three copies are {0}={1},{1}={2}",
                      first,
                      other->second,
                      second));
    }
    if (const auto [other, added] = previous.emplace(second, first); !added) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("stage {0} is the second of two replica pairs, {1}={0} and {2}={0}; "
                              "it is a copy of one stage, so drop one of the pairs",
                              second,
                              other->second,
                              first));
    }
  }
  std::vector<int> firsts;
  for (const auto& [first, second] : next) {
    if (!previous.contains(first)) {
      firsts.push_back(first);
    }
  }
  std::vector<StageGraph::Edge> chains;
  for (int stage : firsts) {
    for (auto pair = next.find(stage); pair != next.end(); pair = next.find(stage)) {
      chains.emplace_back(*pair);
      stage = pair->second;
      next.erase(pair);
    }
  }
  if (!next.empty()) {
    refuse_circle(next);
  }
  return chains;
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
  // Peel off stages that no cycle feeds. From any stage left, a walk back to producers that are
  // also left must repeat a stage.
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

void StageGraph::freeze(const std::vector<int>& stages) {
  if (stages.empty()) {
    return;  // an empty list says nothing about any stage
  }
  for (const int s : stages) {
    require_stage(s, size(), "a list of frozen stages");
    set_needs_weight_grad(StageId(s), false);
  }
  const auto freeze_with = [&](int stage, int copy) {
    set_needs_weight_grad(StageId(copy),
                          needs_weight_grad(StageId(copy)) && needs_weight_grad(StageId(stage)));
  };
  for (const auto& [first, second] : replica_pairs_) {
    freeze_with(first, second);
  }
  for (auto pair = replica_pairs_.rbegin(); pair != replica_pairs_.rend(); ++pair) {
    freeze_with(pair->second, pair->first);
  }
  for (const StageId s : topological_order().value_or(std::vector<StageId>{})) {
    set_needs_input_grad(s,
                         std::ranges::any_of(preds(s), [&](StageId p) { return has_backward(p); }));
  }
}

std::vector<int> StageGraph::frozen() const {
  std::vector<int> stages;
  for (int s = 0; s < size(); ++s) {
    if (!needs_weight_grad(StageId(s))) {
      stages.push_back(s);
    }
  }
  return stages;
}

void StageGraph::describe_as(StageId s, const StageGraph& model, StageId m) {
  Node& node = nodes_[s.index()];
  const Node& like = model.nodes_[m.index()];
  node.name = like.name;
  node.needs_input_grad = like.needs_input_grad;
  node.needs_weight_grad = like.needs_weight_grad;
}

bool StageGraph::is_surplus(const Task& task) const {
  if (task.stage.value < 0 || task.stage.value >= size()) {
    return false;  // a fault that validate() reports
  }
  switch (task.kind) {
    case CellKind::Backward:
      return !has_backward(task.stage);
    case CellKind::BackwardInput:
      return !has_backward(task.stage) ||
             nodes_[task.stage.index()].needs_input_grad == std::optional(false);
    case CellKind::BackwardWeight:
      return !needs_weight_grad(task.stage);
    default:
      return false;
  }
}

bool StageGraph::ends_backward(const Task& task) const {
  const bool last_half = task.kind == CellKind::Backward || task.kind == CellKind::BackwardWeight ||
                         (task.kind == CellKind::BackwardInput &&
                          is_surplus({CellKind::BackwardWeight, task.stage, task.microbatch}));
  return last_half && !is_surplus(task);
}

void StageGraph::set_microbatch_sizes(const std::vector<int>& sizes) {
  if (std::ssize(sizes) != size()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("there are {} sizes of microbatches for {} stages; give each stage one",
                            sizes.size(),
                            size()));
  }
  for (std::size_t s = 0; s < sizes.size(); ++s) {
    if (sizes[s] < 1) {
      throw Error(Errc::ScheduleParameter,
                  fmt::format("stage {} has microbatches of size {}; a size is a number of the "
                              "step's microbatches, 1 or more",
                              s,
                              sizes[s]));
    }
    nodes_[s].microbatch_size = sizes[s];
  }
}

std::vector<int> StageGraph::microbatch_sizes() const {
  if (std::ranges::all_of(nodes_, [](const Node& node) { return node.microbatch_size == 1; })) {
    return {};
  }
  std::vector<int> sizes;
  for (const Node& node : nodes_) {
    sizes.push_back(node.microbatch_size);
  }
  return sizes;
}

void StageGraph::set_replica_pairs(const std::vector<Edge>& pairs) {
  for (const auto& [first, second] : pairs) {
    require_stage(first, size(), "a replica pair");
    require_stage(second, size(), "a replica pair");
  }
  replica_pairs_ = in_chains(pairs);
  replicas_ = 1;
  for (Node& node : nodes_) {
    node.replica = 0;
  }
  for (const auto& [first, second] : replica_pairs_) {
    const int replica = nodes_[static_cast<std::size_t>(first)].replica + 1;
    nodes_[static_cast<std::size_t>(second)].replica = replica;
    replicas_ = std::max(replicas_, replica + 1);
  }
}

}  // namespace stagecraft
