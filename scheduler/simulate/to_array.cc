#include "stagecraft/scheduler/simulate/to_array.h"

#include <cstddef>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

namespace {

std::size_t cells_of_array(const Timeline& timeline) {
  return static_cast<std::size_t>(timeline.makespan) * timeline.rows.size();
}

}  // namespace

bool fits_array(const Schedule& schedule, const StageGraph& graph) {
  return cells_of_array(simulate(schedule, graph, Costs::unit())) <= kMaxCells;
}

Schedule to_array(const Schedule& schedule, const StageGraph& graph) {
  const Timeline timeline = simulate(schedule, graph, Costs::unit());
  if (cells_of_array(timeline) > kMaxCells) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("the array of this schedule would have {} cells, expected at most {}; "
                            "keep the schedule a list",
                            cells_of_array(timeline),
                            kMaxCells));
  }
  std::vector<Schedule::Row> rows;
  for (const RowTimeline& times : timeline.rows) {
    Schedule::Row& row = rows.emplace_back(static_cast<std::size_t>(timeline.makespan));
    for (const EntryTime& entry : times.entries) {
      row[static_cast<std::size_t>(entry.start)] = *entry.cell;
    }
  }
  return Schedule(Schedule::Form::Array, std::move(rows), schedule.headers());
}

}  // namespace stagecraft
