#include "stagecraft/scheduler/measured/measured_timeline.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace stagecraft {
namespace {

EntryTime measured_entry(const Cell& cell, const std::map<Task, TimeSpan>& times) {
  const TimeSpan& first = times.at(cell.tasks().front());
  EntryTime entry{.cell = &cell, .start = first.start, .end = first.end};
  for (const Task& task : cell.tasks()) {
    const TimeSpan& time = times.at(task);
    entry.start = std::min(entry.start, time.start);
    entry.end = std::max(entry.end, time.end);
  }
  return entry;
}

}  // namespace

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

Timeline measured_timeline(const Schedule& tasks, const Measurements& measured) {
  Timeline timeline;
  timeline.makespan = measured.makespan();
  for (std::size_t r = 0; r < tasks.rows().size(); ++r) {
    const Bill bill = measured.bill(r);
    RowTimeline& row = timeline.rows.emplace_back();
    row.busy = bill.busy;
    row.idle = bill.idle();
    const std::map<Task, TimeSpan> times = measured.tasks(r);
    for (const Cell& cell : tasks.rows()[r]) {
      row.entries.push_back(measured_entry(cell, times));
    }
  }
  return timeline;
}

}  // namespace stagecraft
