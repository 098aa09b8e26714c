/// oddities: what a valid schedule says that its author may not have meant.
///
/// Rules (validate.h) find what cannot run; this finds what runs and is worth a second look: cells
/// that wait for nothing, devices without work, both kinds of backward in one stage. Pure; any
/// thread.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct Oddity {
  std::string kind;     ///< "late-cells", as the functions in oddities.cc are called
  std::string message;  ///< what was found, and what would be usual
};

/// Returns all of them. Requires: the schedule is valid for the graph.
[[nodiscard]] std::vector<Oddity> find_oddities(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
