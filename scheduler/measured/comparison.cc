#include "stagecraft/scheduler/measured/comparison.h"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/measured/measured_timeline.h"

namespace stagecraft {
namespace {

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
  const Timeline ran = measured_timeline(plan, measured);
  Comparison out;
  out.planned_makespan = planned.makespan;
  out.measured_makespan = measured.makespan();
  for (std::size_t row = 0; row < planned.rows.size(); ++row) {
    out.rows.push_back({bill_of(planned.rows[row]), measured.bill(row)});
    for (std::size_t i = 0; i < planned.rows[row].entries.size(); ++i) {
      const EntryTime& entry = planned.rows[row].entries[i];
      const EntryTime& measured_time = ran.rows[row].entries[i];
      out.cells.push_back({.row = static_cast<int>(row),
                           .cell = *entry.cell,
                           .planned = {entry.start, entry.end},
                           .measured = {measured_time.start, measured_time.end}});
    }
  }
  std::ranges::stable_sort(out.cells, std::ranges::greater(), [](const CellComparison& cell) {
    return std::abs(cell.late());
  });
  return out;
}

}  // namespace stagecraft
