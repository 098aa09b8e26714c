#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

constexpr const char* kExchangeStream = "exchange";

/// Returns whether an edge carries samples, or their gradients, between chunks in one pass. Weight
/// halves have such edges where they do all of a backward.
bool carries_samples(const TrainingDag& dag, const DagEdge& edge) {
  const DagKind from = dag.node(edge.from).kind;
  return edge.data && from == dag.node(edge.to).kind && computes(from);
}

class Exchanges {
 public:
  Exchanges(TrainingDag& dag, const DividedChunks& divided) : dag_(dag), divided_(divided) {}

  void add() {
    const std::size_t edges = dag_.edges.size();
    for (std::size_t e = 0; e < edges; ++e) {
      const DagEdge edge = dag_.edges[e];
      if (!carries_samples(dag_, edge) || dag_.is_surplus(dag_.node(edge.from)) ||
          dag_.is_surplus(dag_.node(edge.to))) {
        continue;
      }
      const bool leaves = is_divided(edge.from);
      if (leaves || is_divided(edge.to)) {
        const int exchange = exchange_of(leaves ? edge.from : edge.to, leaves);
        dag_.edges[e].to = exchange;
        connect(exchange, edge.to);
      }
    }
    follow_order();
    remove_repeated();
  }

 private:
  [[nodiscard]] bool is_divided(int n) const {
    return divided_.contains({dag_.node(n).stage, dag_.node(n).chunk});
  }

  /// Lets chunks that only follow each other wait for the exchanges between them.
  void follow_order() {
    for (DagEdge& edge : dag_.edges) {
      const DagNode& from = dag_.node(edge.from);
      const DagNode& to = dag_.node(edge.to);
      if (edge.data || !computes(from.kind) || from.kind != to.kind || from.stage != to.stage ||
          from.microbatch != to.microbatch) {
        continue;
      }
      if (const auto back = exchanges_.find({edge.from, true}); back != exchanges_.end()) {
        edge.from = back->second;
      }
      if (const auto there = exchanges_.find({edge.to, false}); there != exchanges_.end()) {
        edge.to = there->second;
      }
    }
  }

  /// Returns the exchange before or after a task of a divided chunk.
  int exchange_of(int task, bool returns) {
    const auto [entry, added] = exchanges_.try_emplace({task, returns}, kNone);
    if (added) {
      DagNode exchange = dag_.node(task);
      const std::string& stream = divided_.at({exchange.stage, exchange.chunk})->stream;
      exchange.serves = exchange.kind;
      exchange.kind = DagKind::AllToAll;
      exchange.returns = returns;
      exchange.stream = dag_.stream_named(stream.empty() ? kExchangeStream : stream);
      exchange.bucket = bucket_of(exchange);
      exchange.overlap = kNone;
      entry->second = dag_.add(exchange);
    }
    return entry->second;
  }

  [[nodiscard]] int bucket_of(const DagNode& node) const {
    const auto found = std::ranges::find_if(dag_.buckets, [&](const DagBucket& bucket) {
      return bucket.is_divided() && bucket.first_chunk == node.chunk &&
             bucket.stages.front() == node.stage;
    });
    return found == dag_.buckets.end() ? kNone : static_cast<int>(found - dag_.buckets.begin());
  }

  void connect(int from, int to) {
    if (connected_.emplace(from, to).second) {
      dag_.connect(from, to);
    }
  }

  /// Removes edges to an exchange that several edges of one chunk have become.
  void remove_repeated() {
    std::set<std::pair<int, int>> known;
    std::erase_if(dag_.edges, [&](const DagEdge& edge) {
      return dag_.node(edge.to).kind == DagKind::AllToAll && edge.data &&
             !known.emplace(edge.from, edge.to).second;
    });
  }

  TrainingDag& dag_;
  const DividedChunks& divided_;
  std::map<std::pair<int, bool>, int> exchanges_;  // by task and direction
  std::set<std::pair<int, int>> connected_;
};

/// Returns why the chunk cannot be divided; empty if it can.
std::string misfit(const TrainingDag& dag, const DividedChunks& divided) {
  for (const DagEdge& edge : dag.edges) {
    const DagNode& from = dag.node(edge.from);
    const DagNode& to = dag.node(edge.to);
    const bool leaves = computes(from.kind) && divided.contains({from.stage, from.chunk});
    const bool enters = computes(to.kind) && divided.contains({to.stage, to.chunk});
    if ((leaves && is_transfer(to.kind)) || (enters && is_transfer(from.kind)) ||
        (edge.data && edge.tensor.value >= 0 && (leaves || enters))) {
      return fmt::format(
          "{} has a neighbor in another stage: samples are exchanged among the "
          "ranks of one place, so begin the region behind the first operator of its "
          "stage, and end it before the last one",
          to_string(dag, leaves ? edge.from : edge.to));
    }
    const bool neighbors =
        from.kind == to.kind && from.stage == to.stage && from.microbatch == to.microbatch;
    if (leaves && enters && neighbors) {
      return fmt::format(
          "{} and {} are regions right behind each other: make them one region, or "
          "put an operator between them",
          to_string(dag, edge.from),
          to_string(dag, edge.to));
    }
  }
  return {};
}

}  // namespace

DividedChunks divided_chunks(const TrainingDag& dag,
                             const DagMatcher& matcher,
                             const std::vector<Numbered<ShardDirective>>& shards,
                             StrategyFaults& faults) {
  std::map<std::pair<StageId, int>, std::ptrdiff_t> tasks;  // by chunk
  for (const DagNode& node : dag.nodes) {
    if (computes(node.kind)) {
      ++tasks[{node.stage, node.chunk}];
    }
  }
  DividedChunks divided;
  for (const auto& [number, directive] : shards) {
    const std::vector<int> matched = matcher.match(number, directive->filter, faults);
    if (directive->ranks.size() < 2) {
      faults.note(number, "one rank divides nothing: leave shard out, or place the stage on more");
      continue;
    }
    const int parts = directive->part_count();
    if (parts < 2 || std::ssize(directive->ranks) % parts != 0) {
      faults.note(number,
                  fmt::format("{} do not divide among {}: choose an n of 2 or more that divides "
                              "their number",
                              count_text(directive->ranks.size(), "rank"),
                              count_text(parts, "part")));
      continue;
    }
    if (!std::ranges::is_sorted(directive->ranks)) {
      faults.note(number,
                  "ranks that divide weights take the microbatches in their order: name them in "
                  "ascending order, also in place and replicate");
      continue;
    }
    const int elsewhere = first_elsewhere(dag, matched, directive->ranks);
    if (elsewhere != kNone) {
      faults.note(number,
                  fmt::format("{} is placed on other ranks: shard it on the ranks of its place",
                              to_string(dag, elsewhere)));
      continue;
    }
    std::map<std::pair<StageId, int>, std::ptrdiff_t> selected;
    for (const int n : matched) {
      ++selected[{dag.node(n).stage, dag.node(n).chunk}];
    }
    DividedChunks here;
    for (const auto& [chunk, count] : selected) {
      const DagChunk& of =
          dag.source.chunks[chunk.first.index()][static_cast<std::size_t>(chunk.second)];
      if (of.parameter_bytes == 0) {
        faults.note(
            number,
            fmt::format("chunk {} of stage {} trains no weights: leave it out of the filter",
                        chunk.second,
                        chunk.first.value));
      } else if (count != tasks[chunk] || divided.contains(chunk)) {
        faults.note(number,
                    fmt::format("chunk {} of stage {} {}",
                                chunk.second,
                                chunk.first.value,
                                count != tasks[chunk]
                                    ? "has other tasks, too: leave MB and PASS out of the filter"
                                    : "is sharded already"));
      } else {
        here.emplace(chunk, directive);
      }
    }
    if (const std::string why = misfit(dag, here); !why.empty()) {
      faults.note(number, why);
    }
    divided.merge(here);
  }
  return divided;
}

void shard(TrainingDag& dag, const DividedChunks& divided) {
  Exchanges(dag, divided).add();
}

}  // namespace stagecraft
