/// validate finds every reason why a schedule cannot work, before any task is issued.
///
/// It applies the rules of registry.h, V01 to V35. It judges the array form by columns (a cell uses
/// results of earlier columns only). It judges the list form by whether all rows can run to the end
/// (V29). Pure; any thread.
/// VA-1: every breach of a rule is reported, with the cell, the missing task and the remedy. Cells
///       that break a rule for the same cause are one violation, which lists them all.
/// VA-2: a task that does not exist (V03 to V06) takes no part in later rules; a missing
///       prerequisite counts as late.
/// VA-3: validation of a valid schedule is linear in the cells.
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/parts/validate_options.h"
#include "stagecraft/scheduler/rules/parts/violation.h"

namespace stagecraft {

/// Returns all violations, by rule; empty when the schedule is valid for the graph.
[[nodiscard]] std::vector<Violation> validate(const Schedule& schedule,
                                              const StageGraph& graph,
                                              const ValidateOptions& options = {});

}  // namespace stagecraft
