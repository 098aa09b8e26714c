/// What is wrong between machines that are each well, from what they said. Pure.
#pragma once

#include <vector>

#include "stagecraft/tools/doctor/exam.h"
#include "stagecraft/tools/doctor/finding.h"

namespace stagecraft::tools {

inline constexpr const char* kBetween = "between hosts";

/// One build, the same bits of every processor, clocks, names and ways between all pairs. `exams`:
/// this machine first, with which builds and clocks are compared.
[[nodiscard]] std::vector<Finding> check_pairs(const std::vector<HostExam>& exams);

}  // namespace stagecraft::tools
