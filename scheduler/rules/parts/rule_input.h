/// The rules, one function per theme. Each appends its violations; validate() calls all of them.
///
/// The file of a rule has the rule's number in its name: V22 is in v20_v23_columns.cc. The rules of
/// tasks also judge the actions that a file lists in addition to the tasks, if they apply:
/// v24_v26_sharding.cc and match_transfers.cc also report V02 to V08. Builders check V34 too
/// (require_legal()).
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft::rules {

/// The data that every rule may read.
struct Input {
  const Schedule& schedule;
  const StageGraph& graph;
  const ValidateOptions& options;
  const TaskGraph& tasks;
  const Placement& placement;
};

using Violations = std::vector<Violation>;

void check_shape(const Input& in, Violations& out);                               // V01, V02
void check_entries(const Input& in, Violations& out);                             // V03 to V06
void check_placement(const Input& in, Violations& out);                           // V07
void check_counts(const Input& in, Violations& out);                              // V08 to V12
void check_columns(const Input& in, Violations& out);                             // V20 to V23
void check_updates(const Input& in, Violations& out);                             // V24 to V26
void check_sharding(const Input& in, Violations& out);                            // V24 to V26, V08
void check_microbatch_order(const Input& in, Violations& out);                    // V27
void check_groups(const Input& in, Violations& out);                              // V28
void check_deadlock(const Input& in, Violations& out);                            // V29
void check_memory(const Input& in, const MemoryModel& model, Violations& out);    // V30
void check_transfers(const Input& in, TransferStreams streams, Violations& out);  // V31, V35
void check_listed_transfers(const Input& in, Violations& out);  // the same, as a file lists them
void check_stage_graph(const Input& in, Violations& out);       // V32
void check_tied_parameters(const Input& in, Violations& out);   // V33
void check_microbatch_sizes(const Input& in, Violations& out);  // V34

/// Returns "row 0, column 2", or "position" for a list.
[[nodiscard]] std::string where(const Input& in, int row, int column);
[[nodiscard]] std::string where(const Input& in, const Entry& entry);

/// Returns a violation of `rule` by `task` in `entry`, without a message.
[[nodiscard]] Violation at(const char* rule, const Entry& entry, const Task& task);

/// Calls visit(entry, task) for every task that exists, row by row.
template <class Visit>
void for_each_task(const Input& in, Visit&& visit) {
  for (const Entry& entry : in.tasks.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      if (in.tasks.in_range(task)) {
        visit(entry, task);
      }
    }
  }
}

}  // namespace stagecraft::rules
