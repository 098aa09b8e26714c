#include "stagecraft/scheduler/dag/dag.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/rules/causes/shortest_cycle.h"

namespace stagecraft {

std::string_view to_string(DagKind kind) {
  constexpr std::array<std::string_view, 12> kNames{"forward",
                                                    "backward",
                                                    "input",
                                                    "weight",
                                                    "send",
                                                    "receive",
                                                    "all_reduce",
                                                    "all_gather",
                                                    "reduce_scatter",
                                                    "all_to_all",
                                                    "update",
                                                    "vote"};
  return kNames.at(static_cast<std::size_t>(kind));
}

Task DagNode::task() const {
  constexpr std::array kKinds{
      CellKind::Forward, CellKind::Backward, CellKind::BackwardInput, CellKind::BackwardWeight};
  return {kKinds.at(static_cast<std::size_t>(kind)), stage, microbatch};
}

int TrainingDag::add(const DagNode& node) {
  nodes.push_back(node);
  return size() - 1;
}

void TrainingDag::connect(int from, int to, bool data) {
  edges.push_back({.from = from, .to = to, .data = data});
}

int TrainingDag::stream_named(const std::string& name) {
  const auto found = std::ranges::find(streams, name);
  const auto position = static_cast<int>(found - streams.begin());
  if (found == streams.end()) {
    streams.push_back(name);
  }
  return position;
}

bool TrainingDag::is_surplus(const DagNode& node) const {
  return source.graph.is_surplus(node.task());
}

std::size_t TrainingDag::count(DagKind kind) const {
  return static_cast<std::size_t>(std::ranges::count(nodes, kind, &DagNode::kind));
}

int TrainingDag::microbatch_in_schedule(const DagNode& node) const {
  const int of_replica = source.graph.microbatches_of(node.stage, microbatches);
  return of_replica > 0 ? node.microbatch.value % of_replica : node.microbatch.value;
}

namespace {

Task task_in_schedule(const TrainingDag& dag, const DagNode& node) {
  Task task = node.task();
  task.microbatch = Microbatch(dag.microbatch_in_schedule(node));
  return task;
}

std::string ranks_text(const std::vector<Rank>& ranks) {
  std::vector<int> numbers;
  for (const Rank rank : ranks) {
    numbers.push_back(rank.value);
  }
  return fmt::format("[{}]", fmt::join(numbers, ","));
}

/// Returns "stage 0", "stage 0.1" for a bucket of several, or all copies and their ranks.
std::string bucket_text(const TrainingDag& dag, int number) {
  const DagNode& node = dag.node(number);
  const DagBucket& bucket = dag.buckets[static_cast<std::size_t>(node.bucket)];
  const bool divided = std::ranges::count_if(dag.buckets, [&](const DagBucket& other) {
                         return std::ranges::find(other.stages, node.stage) != other.stages.end();
                       }) > 1;
  const std::string chunk = divided ? fmt::format(".{}", bucket.first_chunk) : "";
  if (bucket.stages.size() == 1 || !is_collective(node.kind)) {
    return fmt::format("stage {}{}", node.stage.value, chunk);
  }
  std::vector<std::string> stages;
  for (const StageId stage : bucket.stages) {
    stages.push_back(fmt::format("{}{}", stage.value, chunk));
  }
  return fmt::format(
      "stages {} over {}", fmt::join(stages, ", "), ranks_text(ranks_of_members(dag, number)));
}

/// Returns " for F3" or " after B3", the task of a collective that serves one microbatch.
std::string served_text(const TrainingDag& dag, DagNode node) {
  if (node.serves) {
    node.kind = *node.serves;
    Task task = task_in_schedule(dag, node);
    return fmt::format(
        " {} {}{}", node.returns ? "after" : "for", letter(task.kind), task.microbatch.value);
  }
  return node.kind == DagKind::ReduceScatter && node.microbatch.value != kNone
             ? fmt::format(" after B{}", dag.microbatch_in_schedule(node))
             : "";
}

}  // namespace

std::string to_string(const TrainingDag& dag, int number) {
  const DagNode& node = dag.node(number);
  if (computes(node.kind)) {
    const bool whole = dag.source.chunks[node.stage.index()].size() == 1;
    return to_string(task_in_schedule(dag, node)) + (whole ? "" : fmt::format(".{}", node.chunk));
  }
  std::string text(to_string(node.kind));
  if (is_transfer(node.kind)) {
    const bool sends = node.kind == DagKind::Send;
    const DagNode& peer = dag.node(node.peer);
    return fmt::format("{} {}{}{} {} stage {}",
                       text,
                       node.stage.value,
                       node.gradient ? "B" : "F",
                       dag.microbatch_in_schedule(node),
                       sends ? "to" : "from",
                       peer.stage.value);
  }
  if (node.tie != kNone) {
    return fmt::format("{} of {}", text, dag.source.ties[static_cast<std::size_t>(node.tie)].name);
  }
  return node.bucket == kNone
             ? text
             : fmt::format("{} of {}{}", text, bucket_text(dag, number), served_text(dag, node));
}

Meeting meeting_of(const TrainingDag& dag, int number) {
  const DagNode& node = dag.node(number);
  if (!is_collective(node.kind) || (node.tie == kNone && node.bucket == kNone)) {
    return {.kind = node.kind, .alone = number};
  }
  return {.kind = node.kind,
          .tie = node.tie,
          .bucket = node.bucket,
          .microbatch = node.microbatch.value == kNone ? kNone : dag.microbatch_in_schedule(node),
          .serves = node.serves,
          .returns = node.returns};
}

std::vector<int> members_of(const TrainingDag& dag, int number) {
  const Meeting meeting = meeting_of(dag, number);
  std::vector<int> members;
  for (int n = 0; n < dag.size(); ++n) {
    if (meeting_of(dag, n) == meeting) {
      members.push_back(n);
    }
  }
  return members;
}

std::vector<Rank> ranks_of_members(const TrainingDag& dag, int number) {
  std::set<Rank> ranks;
  for (const int member : members_of(dag, number)) {
    const std::vector<Rank>& list = dag.places[static_cast<std::size_t>(dag.node(member).place)];
    ranks.insert(list.begin(), list.end());
  }
  return {ranks.begin(), ranks.end()};
}

std::string place_text(const TrainingDag& dag, int place) {
  return ranks_text(dag.places[static_cast<std::size_t>(place)]);
}

DagAdjacency::DagAdjacency(const TrainingDag& dag) {
  const auto gather = [&](int DagEdge::*end, std::vector<int>& begin, std::vector<int>& list) {
    begin.assign(dag.nodes.size() + 1, 0);
    for (const DagEdge& edge : dag.edges) {
      ++begin[static_cast<std::size_t>(edge.*end) + 1];
    }
    for (std::size_t n = 1; n < begin.size(); ++n) {
      begin[n] += begin[n - 1];
    }
    list.resize(dag.edges.size());
    std::vector<int> next(begin.begin(), begin.end() - 1);
    for (std::size_t e = 0; e < dag.edges.size(); ++e) {
      list[static_cast<std::size_t>(next[static_cast<std::size_t>(dag.edges[e].*end)]++)] =
          static_cast<int>(e);
    }
  };
  gather(&DagEdge::to, in_begin_, in_);
  gather(&DagEdge::from, out_begin_, out_);
}

std::vector<int> topological_order(const TrainingDag& dag, const DagAdjacency& edges) {
  std::vector<int> missing(dag.nodes.size());
  std::vector<int> order;  // also the queue
  order.reserve(dag.nodes.size());
  for (int n = 0; n < dag.size(); ++n) {
    const int needed =
        static_cast<int>(edges.incoming(n).size()) + (dag.node(n).kind == DagKind::Receive ? 1 : 0);
    missing[static_cast<std::size_t>(n)] = needed;
    if (needed == 0) {
      order.push_back(n);
    }
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto is_done_for = [&](int next) {
      if (--missing[static_cast<std::size_t>(next)] == 0) {
        order.push_back(next);
      }
    };
    for (const int e : edges.outgoing(order[i])) {
      is_done_for(dag.edges[static_cast<std::size_t>(e)].to);
    }
    if (dag.node(order[i]).kind == DagKind::Send) {
      is_done_for(dag.node(order[i]).peer);
    }
  }
  return order;
}

int first_elsewhere(const TrainingDag& dag,
                    const std::vector<int>& nodes,
                    const std::vector<Rank>& ranks) {
  const auto found = std::ranges::find_if(nodes, [&](int n) {
    const int place = dag.node(n).place;
    return place != kNone && dag.places[static_cast<std::size_t>(place)] != ranks;
  });
  return found == nodes.end() ? kNone : *found;
}

std::vector<int> find_cycle(const TrainingDag& dag) {
  if (topological_order(dag, DagAdjacency(dag)).size() == dag.nodes.size()) {
    return {};
  }
  std::vector<rules::Edge> edges;
  edges.reserve(dag.edges.size());
  for (const DagEdge& edge : dag.edges) {
    edges.push_back({.from = edge.from, .to = edge.to});
  }
  for (int n = 0; n < dag.size(); ++n) {
    if (dag.node(n).kind == DagKind::Send) {
      edges.push_back({.from = n, .to = dag.node(n).peer});
    }
  }
  constexpr std::size_t kLandmarks = 1000;
  return rules::shortest_cycle(rules::digraph(dag.size(), edges), {}, kLandmarks);
}

}  // namespace stagecraft
