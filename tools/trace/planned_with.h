/// PlannedWith: the costs from before a run that say how long it was to take. The run's report and
/// its trace carry them.
#pragma once

#include <string>

#include "stagecraft/scheduler/costs.h"

namespace stagecraft::tools {

struct PlannedWith {
  std::string file;  ///< whose they are
  Costs costs;       ///< of stages and links
};

}  // namespace stagecraft::tools
