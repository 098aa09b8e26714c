/// Tests that a strategy gives back the schedule from which it was made.
#include "stagecraft/scheduler/dag/issue/schedule_of.h"

#include <algorithm>

#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/dag/directives/apply.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/strategy/strategy_of.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

Schedule round_trip(const Schedule& schedule) {
  const Layout layout = Layout::of(schedule);
  return schedule_of(
      issue(apply(strategy_of(schedule, layout), bare_source(schedule.stage_graph()))));
}

/// Returns the rows, each with the tasks of a group in ascending order.
std::vector<std::vector<std::vector<Task>>> tasks_of(const Schedule& schedule) {
  std::vector<std::vector<std::vector<Task>>> rows;
  for (const Schedule::Row& row : schedule.rows()) {
    auto& cells = rows.emplace_back();
    for (const Cell& cell : row) {
      std::vector<Task> tasks(cell.tasks().begin(), cell.tasks().end());
      std::erase_if(tasks, [](const Task& task) { return task.kind == CellKind::Update; });
      std::ranges::sort(tasks);
      if (!tasks.empty()) {
        cells.push_back(std::move(tasks));
      }
    }
  }
  return rows;
}

TEST_CASE("the strategy of a schedule gives the schedule back", "[scheduler][dag][builders]") {
  for (const BuilderInfo& builder : builders()) {
    BuildRequest request{.devices = 4, .microbatches = 8};
    if (builder.takes_graph) {
      request.graph = StageGraph::chain(4);
    }
    const Schedule built = build_schedule(builder.name, request);
    if (built.stage_graph().replicas() > 1) {
      continue;  // a strategy knows the stages of the model alone
    }
    for (const int copies : {1, 3}) {
      CAPTURE(builder.name, copies);
      const Schedule schedule = in_copies(built, copies);
      const Schedule again = round_trip(schedule);
      CHECK(tasks_of(again) == tasks_of(schedule));
      CHECK(again.microbatches() == schedule.microbatches());
      CHECK(Layout::of(again).ranks() == Layout::of(schedule).ranks());
    }
  }
}

TEST_CASE("ranks without an order get one that breaks no rule", "[scheduler][dag]") {
  const Strategy strategy = parse_strategy(
      "split {} dim=MB n=6\nplace {PP:0} on [3]\nplace {PP:1} on [0,2]\nplace {PP:2} on [1]\n"
      "place {PP:3} on [3]\nreplicate {PP:1} on [0,2]\n");
  const StageGraph graph = StageGraph::from_edges(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  const Schedule schedule = schedule_of(issue(apply(strategy, bare_source(graph))));
  CHECK(validate(schedule, graph, {.microbatches = 6}).empty());
  const std::vector<std::vector<Rank>> places{{Rank(0), Rank(2)}, {Rank(1)}, {Rank(3)}};
  CHECK(schedule.headers().places == places);
}

}  // namespace
}  // namespace stagecraft
