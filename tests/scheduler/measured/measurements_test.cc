/// Tests means over measured steps, and the bill of each row: the bill adds up, and names the cause
/// of each wait.

#include "stagecraft/scheduler/measured/measurements.h"

#include <utility>

#include "stagecraft/scheduler/builders/one_f_one_b.h"
#include "stagecraft/scheduler/builders/registry.h"
#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/measured/measured_timeline.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::WithinAbs;

constexpr Task measured_task(CellKind kind, int stage, int microbatch) {
  return {kind, StageId(stage), Microbatch(microbatch)};
}

/// Returns a step of two rows: row 0 makes a value by 2, which arrives at row 1 at 5; row 1 starts
/// at 6.
MeasuredStep two_rows() {
  MeasuredStep step;
  step.time = {-1, 14};
  step.rows.resize(2);
  step.rows[0].tasks = {{measured_task(CellKind::Forward, 0, 0), {0, 2}, {{.arrived = -0.5}}},
                        {measured_task(CellKind::Backward, 0, 0),
                         {11, 12},
                         {{.from_row = 1, .made = 8, .arrived = 10, .bytes = 4}}}};
  step.rows[1].tasks = {
      {measured_task(CellKind::Forward, 1, 0), {6, 7}, {{.from_row = 0, .made = 2, .arrived = 5}}},
      {measured_task(CellKind::Backward, 1, 0), {7, 8}, {}}};
  step.rows[0].votes = {{12, 12.5}};
  step.rows[1].votes = {{8, 12.5}};
  step.rows[0].updates = {{12.5, 14}};
  step.rows[1].updates = {{12.5, 13}};
  return step;
}

/// Returns the simulator's timeline of a schedule as if it had been measured, `delay` later.
MeasuredStep simulated_step(const Schedule& schedule,
                            const StageGraph& graph,
                            const Costs& costs,
                            double delay = 0) {
  const Timeline timeline = simulate(schedule, graph, costs);
  std::map<Task, std::pair<int, double>> ends;
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    for (const EntryTime& entry : timeline.rows[row].entries) {
      for (const Task& t : entry.cell->tasks()) {
        ends[t] = {static_cast<int>(row), entry.end + delay};
      }
    }
  }
  MeasuredStep step;
  step.time = {delay, delay + timeline.makespan};
  for (std::size_t row = 0; row < timeline.rows.size(); ++row) {
    MeasuredRow& out = step.rows.emplace_back();
    for (const EntryTime& entry : timeline.rows[row].entries) {
      MeasuredTask ran{entry.cell->tasks().front(), {entry.start + delay, entry.end + delay}, {}};
      if (entry.waited_for) {  // these entries alone give the link's times
        const auto [from, made] = ends.at(*entry.waited_for);
        ran.inputs.push_back({.from_row = from, .made = made, .arrived = entry.start + delay});
      }
      out.tasks.push_back(ran);
    }
  }
  return step;
}

}  // namespace

TEST_CASE("a wait is divided at the moments when its tensor was made and when it came",
          "[scheduler][measurements]") {
  Measurements measured;
  measured.add(two_rows());
  CHECK(measured.makespan() == 12);
  const Bill first = measured.bill(0);
  CHECK(first.busy == 3);
  CHECK(first.bubbles.warm_up == 0);
  CHECK(first.bubbles.dependency == 6);  // 2 to 8
  CHECK(first.bubbles.transfer == 2);    // 8 to 10
  CHECK(first.overhead == 1);            // 10 to 11
  CHECK(first.bubbles.drain == 0);
  const Bill second = measured.bill(1);
  CHECK(second.busy == 2);
  CHECK(second.bubbles.warm_up == 6);
  CHECK(second.overhead == 0);
  CHECK(second.bubbles.drain == 4);
}

TEST_CASE("what surrounds the tasks is told apart and adds up to the step",
          "[scheduler][measurements]") {
  Measurements measured;
  measured.add(two_rows());
  const Surroundings first = measured.surroundings(0);
  CHECK(first.start == 1);
  CHECK(first.vote == 0.5);
  CHECK(first.update == 1.5);
  CHECK(first.other == 0);
  const Surroundings second = measured.surroundings(1);
  CHECK(second.vote == 0.5);  // before 12 it waited for the tasks of row 0, which counts as drain
  CHECK(second.update == 0.5);
  CHECK(second.other == 1);
  for (std::size_t row = 0; row < 2; ++row) {
    const Surroundings s = measured.surroundings(row);
    CHECK(s.start + measured.makespan() + s.vote + s.update + s.other == 15);
  }
}

TEST_CASE("an input from the driver that is late is a transfer, however long it took",
          "[scheduler][measurements]") {
  MeasuredStep step;
  step.time = {0, 10};
  step.rows.resize(1);
  step.rows[0].tasks = {{measured_task(CellKind::Forward, 0, 0), {0, 1}, {}},
                        {measured_task(CellKind::Forward, 0, 1), {4, 5}, {{.arrived = 3.5}}}};
  Measurements measured;
  measured.add(step);
  CHECK(measured.bill(0).bubbles.transfer == 2.5);
  CHECK(measured.bill(0).bubbles.dependency == 0);
  CHECK(measured.bill(0).overhead == 0.5);
}

TEST_CASE("of two inputs the last to come decides", "[scheduler][measurements]") {
  MeasuredStep step;
  step.time = {0, 10};
  step.rows.resize(1);
  step.rows[0].tasks = {
      {measured_task(CellKind::Forward, 0, 0), {0, 1}, {}},
      {measured_task(CellKind::Forward, 2, 0),
       {9, 10},
       {{.from_row = 1, .made = 5, .arrived = 6}, {.from_row = 2, .made = 2, .arrived = 8}}}};
  Measurements measured;
  measured.add(step);
  CHECK(measured.bill(0).bubbles.dependency == 1);  // until the late value was made
  CHECK(measured.bill(0).bubbles.transfer == 6);
  CHECK(measured.bill(0).overhead == 1);
}

TEST_CASE("the first step is left out when there is a second", "[scheduler][measurements]") {
  MeasuredStep slow = two_rows();
  slow.rows[0].tasks[1].time = {11, 112};
  slow.time.end = 114;
  Measurements measured;
  measured.add(slow);
  CHECK(measured.steps() == 1);
  CHECK(measured.makespan() == 112);
  measured.add(two_rows());
  CHECK(measured.steps() == 1);
  CHECK(measured.makespan() == 12);
  measured.add(slow);
  CHECK(measured.steps() == 2);
  CHECK(measured.makespan() == 62);
}

TEST_CASE("measured costs are the mean durations of each stage's tasks",
          "[scheduler][measurements]") {
  Measurements measured;
  measured.add(two_rows());
  const Costs costs = measured.costs();
  REQUIRE(costs.stages.each.size() == 2);
  CHECK(costs.stages.each[0].forward == 2);
  CHECK(costs.stages.each[0].backward == 1);
  CHECK(costs.stages.each[0].backward_weight == 0);  // never ran
  CHECK(costs.stages.each[1].forward == 1);
  CHECK(costs.links.each.size() == 2);
  CHECK(costs.links.each.at({0, 1}).time_of(1e9) ==
        3);  // made at 2, arrived at 5, whatever its bytes
  CHECK(costs.links.each.at({1, 0}).latency == 2);
}

TEST_CASE(
    "a simulated schedule taken for a measured one has the simulator's bill, for every builder",
    "[scheduler][measurements][comparison]") {
  for (const char* name : {"gpipe", "1f1b", "interleaved", "zb-h1", "hanayo"}) {
    CAPTURE(name);
    const BuildRequest request{.devices = 4, .microbatches = 8};
    const Schedule schedule = build_schedule(name, request);
    Costs costs;
    costs.stages.usual = {
        .forward = 1.25, .backward = 3, .backward_input = 1.5, .backward_weight = 1};
    costs.links.usual.latency = 0.5;
    const StageGraph graph = schedule.stage_graph();
    const MeasuredStep step = simulated_step(schedule.to_list(), graph, costs, 7.5);
    REQUIRE_FALSE(first_difference(schedule, step).has_value());
    Measurements measured;
    measured.add(step);
    const Comparison comparison = compare(schedule, graph, measured.costs(), measured);
    CHECK_THAT(comparison.measured_makespan, WithinAbs(comparison.planned_makespan, 1e-9));
    for (const RowComparison& row : comparison.rows) {
      CHECK_THAT(row.measured.busy, WithinAbs(row.planned.busy, 1e-9));
      CHECK_THAT(row.measured.idle(), WithinAbs(row.planned.idle(), 1e-9));
      CHECK_THAT(row.measured.bubbles.warm_up, WithinAbs(row.planned.bubbles.warm_up, 1e-9));
      CHECK_THAT(row.measured.bubbles.dependency, WithinAbs(row.planned.bubbles.dependency, 1e-9));
      CHECK_THAT(row.measured.bubbles.transfer, WithinAbs(row.planned.bubbles.transfer, 1e-9));
      CHECK_THAT(row.measured.bubbles.drain, WithinAbs(row.planned.bubbles.drain, 1e-9));
      CHECK_THAT(row.measured.busy + row.measured.idle(),
                 WithinAbs(comparison.measured_makespan, 1e-9));
    }
    CHECK_THAT(comparison.cells.front().late(), WithinAbs(0, 1e-9));
  }
}

TEST_CASE("the cell that is furthest from its plan comes first", "[scheduler][comparison]") {
  const Schedule schedule = one_f_one_b(StageGraph::chain(2), 3);
  const StageGraph graph = schedule.stage_graph();
  MeasuredStep step = simulated_step(schedule.to_list(), graph, {});
  step.rows[0].tasks.back().time.end += 5;
  Measurements measured;
  measured.add(step);
  const Comparison comparison = compare(schedule, graph, {}, measured);
  CHECK(comparison.cells.size() == 12);
  CHECK(comparison.cells.front().row == 0);
  CHECK(to_string(comparison.cells.front().cell) == "0B2");
  CHECK_THAT(comparison.cells.front().late(), WithinAbs(5, 1e-9));
  CHECK_THAT(comparison.cells[1].late(), WithinAbs(0, 1e-9));
}

TEST_CASE("a task that does nothing is planned for no time, however long it took",
          "[scheduler][comparison][surplus]") {
  const Schedule schedule = Schedule::parse("0F0 0I0 . 0W0\n. 1F0 1I0 1W0");
  StageGraph graph = StageGraph::chain(2);
  graph.set_needs_input_grad(StageId(0), false);
  MeasuredStep step = simulated_step(schedule.to_list(), graph, {});
  CHECK_FALSE(first_difference(schedule, step).has_value());
  step.rows[0].tasks[1].time.end += 0.25;  // 0I0
  Measurements measured;
  measured.add(step);
  const Comparison comparison = compare(schedule, graph, measured.costs(), measured);
  for (const CellComparison& cell : comparison.cells) {
    if (to_string(cell.cell) == "0I0") {
      CHECK(cell.planned.length() == 0);
      CHECK(cell.measured.length() == 0.25);
    }
    if (to_string(cell.cell) == "0W0") {
      CHECK(cell.planned.length() == 2.25);  // it does the work of both halves
    }
  }
  CHECK(comparison.cells.size() == 6);
}

TEST_CASE("a step of another schedule is told by its first task that differs",
          "[scheduler][comparison]") {
  const Schedule schedule = one_f_one_b(StageGraph::chain(2), 3);
  const StageGraph graph = schedule.stage_graph();
  const MeasuredStep good = simulated_step(schedule.to_list(), graph, {});
  CHECK_FALSE(first_difference(schedule, good).has_value());

  MeasuredStep other_order = good;
  std::swap(other_order.rows[1].tasks[0].task, other_order.rows[1].tasks[1].task);
  CHECK_THAT(first_difference(schedule, other_order).value(),
             ContainsSubstring("row 1: the schedule has 1F0 where the step ran 1B0"));
  MeasuredStep shorter = good;
  shorter.rows[0].tasks.pop_back();
  CHECK_THAT(first_difference(schedule, shorter).value(),
             ContainsSubstring("row 0: the schedule has 0B2 where the step ran nothing"));
  MeasuredStep longer = good;
  longer.rows[0].tasks.push_back(longer.rows[0].tasks.back());
  CHECK_THAT(first_difference(schedule, longer).value(), ContainsSubstring("ran 0B2 after all"));
  MeasuredStep wider = good;
  wider.rows.emplace_back();
  CHECK_THAT(first_difference(schedule, wider).value(),
             ContainsSubstring("2 rows, the step ran 3"));
}

TEST_CASE("the tasks of a group may run in any order, and a listed update is no task",
          "[scheduler][comparison]") {
  using namespace cells;
  const Schedule schedule{{F(0, 0), F(0, 1), B(0, 0), B(0, 1), U(0)}};
  const Schedule grouped{{F(0, 0), overlap(F(0, 1), B(0, 0)), B(0, 1)}};
  MeasuredStep step;
  step.time = {0, 4};
  step.rows.resize(1);
  step.rows[0].tasks = {{measured_task(CellKind::Forward, 0, 0), {0, 1}, {}},
                        {measured_task(CellKind::Backward, 0, 0), {1, 2}, {}},
                        {measured_task(CellKind::Forward, 0, 1), {2, 3}, {}},
                        {measured_task(CellKind::Backward, 0, 1), {3, 4}, {}}};
  CHECK_FALSE(first_difference(grouped, step).has_value());
  CHECK(first_difference(schedule, step).has_value());
  Measurements measured;
  measured.add(step);
  const Comparison comparison = compare(grouped, grouped.stage_graph(), measured.costs(), measured);
  CHECK(comparison.cells.size() == 3);
  CHECK(comparison.planned_makespan == 4);
  std::swap(step.rows[0].tasks[1].task, step.rows[0].tasks[2].task);
  CHECK_FALSE(first_difference(schedule, step).has_value());
}

TEST_CASE("a measured run has the form of a simulated one, without updates (CM-1)",
          "[scheduler][measured]") {
  const Schedule schedule = Schedule::parse("@form list\n0F0 0B0 0U\n1F0|1B0 1U");
  const Schedule tasks = tasks_only(schedule);
  CHECK(tasks.rows()[0].size() == 2);
  CHECK(tasks.rows()[1].size() == 1);
  Measurements measured;
  measured.add(two_rows());
  const Timeline timeline = measured_timeline(tasks, measured);
  CHECK_THAT(timeline.makespan, WithinAbs(12, 1e-12));
  REQUIRE(timeline.rows.size() == 2);
  CHECK_THAT(timeline.rows[0].entries.at(1).start, WithinAbs(11, 1e-12));
  CHECK_THAT(timeline.rows[0].entries.at(1).end, WithinAbs(12, 1e-12));
  // The group lasts from its first task to its last.
  CHECK_THAT(timeline.rows[1].entries.at(0).start, WithinAbs(6, 1e-12));
  CHECK_THAT(timeline.rows[1].entries.at(0).end, WithinAbs(8, 1e-12));
  CHECK_THAT(timeline.bubble_fraction(1), WithinAbs(10. / 12, 1e-12));
}

}  // namespace stagecraft
