/// StageAssignment maps each operator of a captured graph to its stage. marked_stages.h or
/// cut_into_stages.h makes it; partition reads it.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct StageAssignment {
  std::vector<int> stage_of;       ///< by operator
  std::vector<std::string> names;  ///< of the stages; each stage has an operator
};

}  // namespace stagecraft
