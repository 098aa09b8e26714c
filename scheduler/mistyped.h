/// find_mistyped: one task twice and its neighbour missing is one wrong number, not two faults.
///
///     1B0 1B1 1B2 1B2     of stage 1's backwards 2 is there twice and 3 is not: the second is 1B3
///
/// The command that repairs schedules asks it. Pure; any thread.
#pragma once

#include <optional>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// A cell's member whose number is wrong.
struct Mistyped {
  int row = 0;
  int column = 0;  ///< or position of a list
  Task found;
  Task meant;
};

/// Returns the first stage and kind of which exactly one task is there twice and exactly one is
/// missing: the second is what is mistyped, or the first where only that leaves fewer faults.
/// Cost: linear; two validations where there is one.
[[nodiscard]] std::optional<Mistyped> find_mistyped(const Schedule& schedule,
                                                    const StageGraph& graph);

/// Returns the schedule with the right number. Requires: the cell is there.
[[nodiscard]] Schedule apply(const Schedule& schedule, const Mistyped& mistyped);

}  // namespace stagecraft
