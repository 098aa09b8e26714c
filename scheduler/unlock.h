/// find_unlocking: of rows that wait for each other in several places, the next exchange to make.
///
/// A deadlock's own repair (V29) is the one exchange that lets every row run. Where there is none,
/// as there are several deadlocks, this is one that lets the rows run further; made again and again
/// it frees them one by one. Pure; any thread.
#pragma once

#include <optional>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

/// Tries the pairs of a row's cells on the cycle of `deadlock`, the nearest first, and returns the
/// one after which most cells run; nothing where none lets more run than now.
/// Requires: a V29 of the list. Cost: bounded; in a large schedule it may go unfound.
[[nodiscard]] std::optional<Exchange> find_unlocking(const Schedule& list,
                                                     const StageGraph& graph,
                                                     const Violation& deadlock);

}  // namespace stagecraft
