#include "stagecraft/scheduler/rules/repair/unlock.h"

#include <algorithm>
#include <vector>

#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMostCellsRun = 20'000'000;  // total over all exchanges that are tried

std::size_t cells_that_run(const Schedule& list, const StageGraph& graph) {
  return TaskGraph(list.rows(), graph, list.microbatches()).walk([](int) {});
}

std::vector<Exchange> pairs_on_cycle(const Violation& deadlock) {
  std::vector<Exchange> pairs;
  for (const auto& [row, column] : deadlock.cells) {
    for (const auto& [other_row, other] : deadlock.cells) {
      if (row == other_row && column < other) {
        pairs.push_back({row, column, other});
      }
    }
  }
  std::ranges::stable_sort(pairs, {}, [](const Exchange& e) { return e.second - e.first; });
  return pairs;
}

}  // namespace

std::optional<Exchange> find_unlocking(const Schedule& list,
                                       const StageGraph& graph,
                                       const Violation& deadlock) {
  std::size_t most = cells_that_run(list, graph);
  std::size_t cells = 1;
  for (const Schedule::Row& row : list.rows()) {
    cells += row.size();
  }
  std::size_t left = kMostCellsRun / cells;
  std::optional<Exchange> best;
  for (const Exchange& exchange : pairs_on_cycle(deadlock)) {
    if (left-- == 0) {
      break;
    }
    const std::size_t run = cells_that_run(apply(list, exchange), graph);
    if (run > most) {
      most = run;
      best = exchange;
    }
  }
  return best;
}

}  // namespace stagecraft
