/// RuleInput holds the data that every rule may read, and helpers that most rules use.
///
/// validate() makes it once for a schedule. It views the schedule, graph and options. Pure; one
/// thread at a time.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/rules/parts/validate_options.h"
#include "stagecraft/scheduler/rules/parts/violation.h"

namespace stagecraft::rules {

struct RuleInput {
  const Schedule& schedule;
  const StageGraph& graph;
  const ValidateOptions& options;
  const TaskGraph& tasks;
  const Placement& placement;
};

using Violations = std::vector<Violation>;

/// Returns "row 0, column 2", or "position" for a list.
[[nodiscard]] std::string where(const RuleInput& in, int row, int column);
[[nodiscard]] std::string where(const RuleInput& in, const Entry& entry);

/// Returns a violation of `rule` by `task` in `entry`, without a message.
[[nodiscard]] Violation at(const char* rule, const Entry& entry, const Task& task);

/// Calls visit(entry, task) for every task that exists, row by row.
template <class Visit>
void for_each_task(const RuleInput& in, Visit&& visit) {
  for (const Entry& entry : in.tasks.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      if (in.tasks.in_range(task)) {
        visit(entry, task);
      }
    }
  }
}

}  // namespace stagecraft::rules
