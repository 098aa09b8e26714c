/// Comparison compares the planned times of a schedule with the measured ones.
///
/// compare() makes it from a schedule, the durations to plan with and the measurements of a run;
/// the tools print it. A value; pure.
/// CM-1: the comparison covers only tasks, over the makespan. It leaves out updates, at any place
///       of a schedule, because a run makes them after the vote, when all tasks have ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct RowComparison {
  Bill planned, measured;
};

/// CellComparison holds the times of a cell, counted from the start of the first task of any row.
struct CellComparison {
  int row = 0;
  Cell cell;
  TimeSpan planned, measured;

  [[nodiscard]] double late() const { return measured.end - planned.end; }
};

struct Comparison {
  double planned_makespan = 0;
  double measured_makespan = 0;
  std::vector<RowComparison> rows;
  std::vector<CellComparison> cells;  ///< by |late()|, largest first
};

/// Returns a sentence that names the first row and task where the step does not follow the
/// schedule; nothing if it follows it. The tasks of a group may have run in any order.
[[nodiscard]] std::optional<std::string> first_difference(const Schedule& schedule,
                                                          const MeasuredStep& step);

/// Requires: first_difference() finds nothing in the measured steps; measured.steps() > 0.
/// Errors: those of simulate().
[[nodiscard]] Comparison compare(const Schedule& schedule,
                                 const StageGraph& graph,
                                 const Costs& costs,
                                 const Measurements& measured);

}  // namespace stagecraft
