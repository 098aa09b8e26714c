/// find_mistyped finds a wrong number: if one task appears twice and its neighbor is missing, that
/// is one fault, not two.
///
///     1B0 1B1 1B2 1B2     stage 1's backward 2 appears twice and 3 is missing: the second is 1B3
///
///     1F0 1F1 1F7 1B0 ...     no other task is of microbatch 7, and 1F2 is missing: 1F7 is 1F2
///
/// The commands that check and repair schedules use it. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft {

/// Returns the first stage and kind with exactly one task that appears twice and exactly one that
/// is missing. The second appearance is the mistyped one, or the first if only that leaves fewer
/// faults. If there is none, returns the only task of a stage or microbatch that does not exist, or
/// of a last microbatch that has no other task, if its row lacks exactly one of its kind and
/// writing that leaves fewer faults.
/// Cost: linear; two validations if there is a result.
[[nodiscard]] std::optional<Mistyped> find_mistyped(const Schedule& schedule,
                                                    const StageGraph& graph);

/// Returns the schedule with the corrected number. Requires: the cell is there.
[[nodiscard]] Schedule apply(const Schedule& schedule, const Mistyped& mistyped);

/// Returns "1B1 for 1B0 (row 1, column 3)".
[[nodiscard]] std::string to_string(const Mistyped& mistyped, const Schedule& schedule);

/// Returns `found`, the violations of the schedule under the same graph and options, in which each
/// wrong number is one violation (V08; V04 or V05 for a task alone with its number), and the
/// violations that remain if all numbers are right.
/// Cost: as find_mistyped, and one validation for each; at most 20 are reported.
[[nodiscard]] std::vector<Violation> report_mistyped(std::vector<Violation> found,
                                                     const Schedule& schedule,
                                                     const StageGraph& graph,
                                                     const ValidateOptions& options);

}  // namespace stagecraft
