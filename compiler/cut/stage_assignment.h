/// StageAssignment: which stage each operator of a captured graph belongs to. Made by
/// marked_stages.h or cut_into_stages.h, read by partition.
#pragma once

#include <string>
#include <vector>

namespace stagecraft {

struct StageAssignment {
  std::vector<int> stage_of;       ///< by operator
  std::vector<std::string> names;  ///< of the stages; each has an operator
};

}  // namespace stagecraft
