/// PlannedWith holds costs from before a run, which predict its time. The run's report and its
/// trace carry them.
#pragma once

#include <string>

#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft::tools {

struct PlannedWith {
  std::string file;  ///< the file of the costs
  Costs costs;       ///< of stages and links
};

}  // namespace stagecraft::tools
