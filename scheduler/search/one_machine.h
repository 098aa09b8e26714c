/// one_machine_bound returns the least time that one device needs for its tasks, if each task has a
/// time before which it cannot start and a time that must pass after it.
///
/// It lets tasks interrupt each other, so the result is a lower bound. It is the best bound of that
/// kind: the task with the longest tail goes first. Source: Jackson's preemptive schedule, as in
/// Carlier, "The one-machine sequencing problem" (1982). Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace stagecraft {

/// Ticks counts the time of the search in whole ticks, so that equal times compare equal.
using Ticks = std::int64_t;

struct MachineJob {
  Ticks head = 0;  ///< cannot start before
  Ticks time = 0;
  Ticks tail = 0;  ///< passes after its end until all is done
};

/// Returns the least time at which all tails have passed; 0 for no jobs. Sorts `jobs`. Cost: n log
/// n.
[[nodiscard]] Ticks one_machine_bound(std::vector<MachineJob>& jobs);

}  // namespace stagecraft
