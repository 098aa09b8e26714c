#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/dag/directives/directives.h"
#include "stagecraft/scheduler/dag/remove_nodes.h"

namespace stagecraft {
namespace {

constexpr const char* kExchangeStream = "exchange";

/// Returns whether an edge carries samples into or out of a chunk in one pass.
bool carries_samples(const TrainingDag& dag, const DagEdge& edge) {
  const DagKind from = dag.node(edge.from).kind;
  return edge.data && from == dag.node(edge.to).kind &&
         (from == DagKind::Forward || from == DagKind::Backward || from == DagKind::Input);
}

}  // namespace

void shard(TrainingDag& dag,
           const DagMatcher& matcher,
           const std::vector<Numbered<ShardDirective>>& shards,
           StrategyFaults& faults) {
  for (const auto& [number, directive] : shards) {
    const std::vector<int> matched = matcher.match(number, directive->filter, faults);
    if (matched.empty()) {
      continue;
    }
    const int elsewhere = first_elsewhere(dag, matched, directive->ranks);
    if (elsewhere != kNone) {
      faults.note(number,
                  fmt::format("{} is placed on other ranks: shard it on the ranks of its place",
                              to_string(dag, elsewhere)));
      continue;
    }
    std::set<int> inside(matched.begin(), matched.end());
    std::set<int> dead;  // gathers and sums of the matched chunks
    for (const DagEdge& edge : dag.edges) {
      const auto serves = [&](int comm, int compute) {
        return inside.contains(compute) && is_collective(dag.node(comm).kind) &&
               dag.node(comm).bucket != kNone;
      };
      if (serves(edge.from, edge.to)) {
        dead.insert(edge.from);
      } else if (serves(edge.to, edge.from)) {
        dead.insert(edge.to);
      }
      const bool crosses = is_transfer(dag.node(edge.from).kind) && inside.contains(edge.to);
      if (crosses || (is_transfer(dag.node(edge.to).kind) && inside.contains(edge.from))) {
        faults.note(number,
                    fmt::format("{} has a neighbor on other ranks: samples are exchanged among the "
                                "ranks of one place",
                                to_string(dag, crosses ? edge.to : edge.from)));
        break;
      }
    }
    const int stream =
        dag.stream_named(directive->stream.empty() ? kExchangeStream : directive->stream);
    const std::size_t edges = dag.edges.size();
    for (std::size_t e = 0; e < edges; ++e) {
      const DagEdge edge = dag.edges[e];
      const bool to_inside = inside.contains(edge.to);
      if (!carries_samples(dag, edge) || (!to_inside && !inside.contains(edge.from))) {
        continue;
      }
      DagNode exchange = dag.node(to_inside ? edge.to : edge.from);
      exchange.kind = DagKind::AllToAll;
      exchange.stream = stream;
      dag.edges[e].to = dag.add(exchange);
      dag.connect(dag.edges[e].to, edge.to);
    }
    remove_nodes(dag, dead);
  }
}

}  // namespace stagecraft
