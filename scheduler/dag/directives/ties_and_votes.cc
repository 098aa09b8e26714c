#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/dag/directives/directives.h"

namespace stagecraft {
namespace {

constexpr const char* kTieStream = "reduce";

/// The updates of a tie's stages on one rank list.
using UpdatesByPlace = std::map<int, std::set<int>>;

UpdatesByPlace updates_of(const TrainingDag& dag, const DagTie& tie) {
  UpdatesByPlace updates;
  for (int n = 0; n < dag.size(); ++n) {
    const DagNode& node = dag.node(n);
    if (node.kind == DagKind::Update &&
        std::ranges::find(tie.stages, node.stage) != tie.stages.end()) {
      updates[node.place].insert(n);
    }
  }
  return updates;
}

}  // namespace

void add_ties(TrainingDag& dag, StrategyFaults& faults) {
  if (!dag.training) {
    return;
  }
  for (std::size_t t = 0; t < dag.source.ties.size(); ++t) {
    const DagTie& tie = dag.source.ties[t];
    const UpdatesByPlace updates = updates_of(dag, tie);
    std::set<std::size_t> counts;
    for (const auto& [place, nodes] : updates) {
      counts.insert(place == kNone ? 0 : dag.places[static_cast<std::size_t>(place)].size());
    }
    if (counts.size() > 1) {
      std::vector<int> stages;
      for (const StageId stage : tie.stages) {
        stages.push_back(stage.value);
      }
      faults.note(fmt::format("stages {} share {} and have {} copies: give them equally many",
                              fmt::join(stages, ", "),
                              tie.name,
                              fmt::join(counts, " and ")));
      continue;
    }
    for (const auto& [place, nodes] : updates) {
      const int sum = dag.add({.kind = DagKind::AllReduce,
                               .place = place,
                               .stream = dag.stream_named(kTieStream),
                               .tie = static_cast<int>(t)});
      const std::size_t edges = dag.edges.size();
      for (std::size_t e = 0; e < edges; ++e) {
        if (nodes.contains(dag.edges[e].to)) {
          dag.connect(dag.edges[e].from, sum);
        }
      }
      for (const int update : nodes) {
        dag.connect(sum, update, /*data=*/false);
      }
    }
  }
}

void add_votes(TrainingDag& dag) {
  std::vector<int> vote_of(dag.places.size());
  const int before = dag.size();
  for (std::size_t p = 0; p < dag.places.size(); ++p) {
    vote_of[p] = dag.add({.kind = DagKind::Vote, .place = static_cast<int>(p)});
  }
  const auto vote = [&](int n) { return vote_of[static_cast<std::size_t>(dag.node(n).place)]; };
  // The vote takes over the dependencies of the updates, which come after it on each rank.
  std::vector<bool> ends(static_cast<std::size_t>(before), true);  // nothing of the step follows
  std::set<std::pair<int, int>> moved;
  std::erase_if(dag.edges, [&](const DagEdge& edge) {
    if (dag.node(edge.to).kind == DagKind::Update) {
      moved.emplace(edge.from, vote(edge.to));
      ends[static_cast<std::size_t>(edge.from)] = false;
      return true;
    }
    if (!is_transfer(dag.node(edge.to).kind)) {
      ends[static_cast<std::size_t>(edge.from)] = false;
    }
    if (dag.node(edge.from).kind == DagKind::Update) {
      ends[static_cast<std::size_t>(edge.to)] = false;  // comes after the vote
    }
    return false;
  });
  for (const auto& [from, to] : moved) {
    dag.connect(from, to, /*data=*/false);
  }
  for (int n = 0; n < before; ++n) {
    const DagKind kind = dag.node(n).kind;
    if (kind == DagKind::Update) {
      dag.connect(vote(n), n, /*data=*/false);
    } else if (ends[static_cast<std::size_t>(n)] && (computes(kind) || is_collective(kind))) {
      dag.connect(n, vote(n), /*data=*/false);
    }
  }
}

}  // namespace stagecraft
