#include "stagecraft/scheduler/measured/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace stagecraft {
namespace {

/// Returns the list form without updates (CM-1).
Schedule tasks_only(const Schedule& schedule) {
  std::vector<Schedule::Row> rows;
  for (const Schedule::Row& row : schedule.rows()) {
    Schedule::Row& kept = rows.emplace_back();
    for (const Cell& cell : row) {
      const bool update = std::ranges::any_of(
          cell.tasks(), [](const Task& task) { return task.kind == CellKind::Update; });
      if (!cell.idle() && !update) {
        kept.push_back(cell);
      }
    }
  }
  return {Schedule::Form::List, std::move(rows), schedule.headers()};
}

std::string names_of(const std::multiset<Task>& tasks) {
  std::vector<std::string> names;
  for (const Task& task : tasks) {
    names.push_back(to_string(task));
  }
  return names.empty() ? "nothing" : fmt::format("{}", fmt::join(names, "|"));
}

std::optional<std::string> first_difference(int number,
                                            const Schedule::Row& row,
                                            const std::vector<MeasuredTask>& ran) {
  std::size_t next = 0;
  for (const Cell& cell : row) {
    const std::multiset<Task> planned(cell.tasks().begin(), cell.tasks().end());
    std::multiset<Task> measured;
    for (std::size_t i = 0; i < planned.size() && next < ran.size(); ++i) {
      measured.insert(ran[next++].task);
    }
    if (measured != planned) {
      return fmt::format("row {}: the schedule has {} where the step ran {}",
                         number,
                         names_of(planned),
                         names_of(measured));
    }
  }
  if (next < ran.size()) {
    return fmt::format("row {}: the step ran {} after all tasks of the schedule",
                       number,
                       to_string(ran[next].task));
  }
  return std::nullopt;
}

/// Returns the span from the start of the first of the cell's tasks to the end of the last.
TimeSpan measured_span(const Cell& cell, const std::map<Task, TimeSpan>& times) {
  TimeSpan span = times.at(cell.tasks().front());
  for (const Task& task : cell.tasks()) {
    const TimeSpan& time = times.at(task);
    span = {std::min(span.start, time.start), std::max(span.end, time.end)};
  }
  return span;
}

}  // namespace

std::optional<std::string> first_difference(const Schedule& schedule, const MeasuredStep& step) {
  const Schedule plan = tasks_only(schedule);
  if (plan.rows().size() != step.rows.size()) {
    return fmt::format(
        "the schedule has {} rows, the step ran {}", plan.rows().size(), step.rows.size());
  }
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    if (auto found =
            first_difference(static_cast<int>(row), plan.rows()[row], step.rows[row].tasks)) {
      return found;
    }
  }
  return std::nullopt;
}

Comparison compare(const Schedule& schedule,
                   const StageGraph& graph,
                   const Costs& costs,
                   const Measurements& measured) {
  const Schedule plan = tasks_only(schedule);
  const Timeline planned = simulate(plan, graph, costs);
  Comparison out;
  out.planned_makespan = planned.makespan;
  out.measured_makespan = measured.makespan();
  for (std::size_t row = 0; row < planned.rows.size(); ++row) {
    out.rows.push_back({bill_of(planned.rows[row]), measured.bill(row)});
    const std::map<Task, TimeSpan> times = measured.tasks(row);
    for (const EntryTime& entry : planned.rows[row].entries) {
      out.cells.push_back({.row = static_cast<int>(row),
                           .cell = *entry.cell,
                           .planned = {entry.start, entry.end},
                           .measured = measured_span(*entry.cell, times)});
    }
  }
  std::ranges::stable_sort(out.cells, std::ranges::greater(), [](const CellComparison& cell) {
    return std::abs(cell.late());
  });
  return out;
}

}  // namespace stagecraft
