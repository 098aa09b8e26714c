/// The rules, one function per theme. Each appends what it finds; validate() is the list of them.
///
/// Rules by number: V01-V02 shape, V03-V06 entries, V07 placement, V08-V12 counts, V20-V23 columns,
/// V24-V26 updates, V27 microbatch order, V28 groups, V29 deadlock, V30 memory, V31 and V35
/// transfers, derived or as a file lists them, V32 stage graph, V33 tied parameters. V34 is the
/// builders' own.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/placement.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/task_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft::rules {

/// What every rule may look at.
struct Input {
  const Schedule& schedule;
  const StageGraph& graph;
  const ValidateOptions& options;
  const TaskGraph& tasks;
  const Placement& placement;
};

using Violations = std::vector<Violation>;

void check_shape(const Input& in, Violations& out);
void check_entries(const Input& in, Violations& out);
void check_placement(const Input& in, Violations& out);
void check_counts(const Input& in, Violations& out);
void check_columns(const Input& in, Violations& out);
void check_updates(const Input& in, Violations& out);
void check_microbatch_order(const Input& in, Violations& out);
void check_groups(const Input& in, Violations& out);
void check_deadlock(const Input& in, Violations& out);
void check_memory(const Input& in, const MemoryModel& model, Violations& out);
void check_transfers(const Input& in, TransferStreams streams, Violations& out);
void check_communication(const Input& in, Violations& out);
void check_sharding(const Input& in, Violations& out);
void check_stage_graph(const Input& in, Violations& out);
void check_tied_parameters(const Input& in, Violations& out);

/// Returns "row 0, column 2", or "position" for a list.
[[nodiscard]] std::string where(const Input& in, int row, int column);
[[nodiscard]] std::string where(const Input& in, const Entry& entry);

/// Returns a violation of `rule` by `task` in `entry`, its message still empty.
[[nodiscard]] Violation at(const char* rule, const Entry& entry, const Task& task);

/// Returns "0B0 -> 0F1 -> 0B0" of the steps of a cycle; of a long one its beginning and its length.
[[nodiscard]] std::string circle(const std::vector<std::string>& steps);

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
