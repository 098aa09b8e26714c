/// Comparison: what a schedule was planned to take against what it took.
///
/// Made from a schedule, the durations to plan with and the measurements of a run; printed by the
/// tools. A value; pure.
/// CM-1: only tasks are compared, over the makespan: updates are not, wherever a schedule lists
/// them, since a run makes them behind the vote, when all tasks have ended.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/measurements.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct RowComparison {
  Bill planned, measured;
};

/// A cell's time since the first task of any row began.
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
  std::vector<CellComparison> cells;  ///< by |late()|, the largest first
};

/// Says in which row and task the step is first another schedule's; nothing when it is this one's.
/// The tasks of a group may have run in any order.
[[nodiscard]] std::optional<std::string> first_difference(const Schedule& schedule,
                                                          const MeasuredStep& step);

/// Requires: first_difference() finds nothing in the steps measured; measured.steps() > 0.
/// Errors: those of simulate().
[[nodiscard]] Comparison compare(const Schedule& schedule,
                                 const StageGraph& graph,
                                 const Costs& costs,
                                 const Measurements& measured);

}  // namespace stagecraft
