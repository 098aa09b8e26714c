#include "stagecraft/scheduler/rules/repair/wrong_graph.h"

#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

/// Counts how often a stage waits for the one before it, and how often it does not.
struct Kept {
  int yes = 0;
  int no = 0;
};

void count(const TaskGraph& tasks, const Task& first, const Task& second, Kept& kept) {
  const int a = tasks.find(first);
  const int b = tasks.find(second);
  if (a != TaskGraph::kMissing && b != TaskGraph::kMissing) {
    ++(tasks.entry(a).column < tasks.entry(b).column ? kept.yes : kept.no);
  }
}

/// Returns whether at least as many tasks keep the edge as break it: forwards go along it,
/// backwards against it.
bool keeps_edge(const TaskGraph& tasks, StageId from, StageId to) {
  Kept kept;
  for (Microbatch m; m.value < tasks.microbatches(from); ++m.value) {
    count(tasks, {CellKind::Forward, from, m}, {CellKind::Forward, to, m}, kept);
    for (const CellKind kind : {CellKind::Backward, CellKind::BackwardInput}) {
      count(tasks, {kind, to, m}, {kind, from, m}, kept);
    }
  }
  return kept.yes >= kept.no;
}

}  // namespace

std::optional<Violation> find_wrong_graph(const Schedule& array) {
  const StageGraph chain = StageGraph::chain(array.stages());
  const TaskGraph tasks(array.rows(), chain, array.microbatches());
  std::vector<StageGraph::Edge> edges;
  std::vector<std::string> not_kept;
  for (const auto& [from, to] : chain.edges()) {
    if (keeps_edge(tasks, StageId(from), StageId(to))) {
      edges.emplace_back(from, to);
    } else {
      not_kept.push_back(fmt::format("{} does not wait for {}", to, from));
    }
  }
  if (not_kept.empty() || !validate(array, StageGraph::from_edges(array.stages(), edges)).empty()) {
    return std::nullopt;
  }
  Violation v;
  v.rule = "V32";
  v.missing = "stage graph";
  v.message = fmt::format(
      "these stages do not form a chain, because {} {}; the file's format expresses only chains, "
      "so give the stage graph, e.g. --graph 0-2,1-2",
      not_kept.size() == 1 ? "stage" : "of the stages",
      fmt::join(not_kept, ", "));
  return v;
}

}  // namespace stagecraft
