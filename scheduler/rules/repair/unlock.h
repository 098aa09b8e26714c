/// find_unlocking returns the next exchange to make if rows wait for each other in several places.
///
/// The repair of a deadlock (V29) is the one exchange that lets every row run. With several
/// deadlocks there is no such exchange. This function returns an exchange that lets the rows run
/// further; repeated calls resolve the deadlocks one by one. Pure; any thread.
#pragma once

#include <optional>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft {

/// Tries the pairs of a row's cells on the cycle of `deadlock`, the nearest first. Returns the
/// exchange after which most cells run; nothing if none lets more cells run than now.
/// Requires: a V29 of the list.
/// Cost: bounded, so in a large schedule it may miss an exchange.
[[nodiscard]] std::optional<Exchange> find_unlocking(const Schedule& list,
                                                     const StageGraph& graph,
                                                     const Violation& deadlock);

}  // namespace stagecraft
