/// find_mistyped: one task twice and its neighbour missing is one wrong number, not two faults.
///
///     1B0 1B1 1B2 1B2     of stage 1's backwards 2 is there twice and 3 is not: the second is 1B3
///
/// The commands that check and repair schedules ask it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

/// Returns the first stage and kind of which exactly one task is there twice and exactly one is
/// missing: the second is what is mistyped, or the first where only that leaves fewer faults.
/// Cost: linear; two validations where there is one.
[[nodiscard]] std::optional<Mistyped> find_mistyped(const Schedule& schedule,
                                                    const StageGraph& graph);

/// Returns the schedule with the right number. Requires: the cell is there.
[[nodiscard]] Schedule apply(const Schedule& schedule, const Mistyped& mistyped);

/// Returns "1B1 for 1B0 (row 1, column 3)".
[[nodiscard]] std::string to_string(const Mistyped& mistyped, const Schedule& schedule);

/// Returns `found`, the violations of the schedule under the same graph and options, with each
/// wrong number told as one (V08), and beside it what breaks a rule though all numbers are right.
/// Cost: as find_mistyped and one validation for each, of which 20 are told.
[[nodiscard]] std::vector<Violation> tell_mistyped(std::vector<Violation> found,
                                                   const Schedule& schedule,
                                                   const StageGraph& graph,
                                                   const ValidateOptions& options);

}  // namespace stagecraft
