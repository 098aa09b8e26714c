/// StageAssignment maps each operator of a captured graph to its stage. marked_stages.h or
/// cut_into_stages.h makes it; partition reads it.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/stage_parts.h"

namespace stagecraft {

struct StageAssignment {
  std::vector<int> stage_of;       ///< by operator
  std::vector<std::string> names;  ///< of the stages; each stage has an operator
  StageParts parts = {};           ///< by stage, if they are parts of the stages of a schedule
};

}  // namespace stagecraft
