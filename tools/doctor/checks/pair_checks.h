/// pair_checks finds the faults between machines that are each in order, in their answers. Pure.
#pragma once

#include <vector>

#include "stagecraft/tools/doctor/checks/finding.h"
#include "stagecraft/tools/doctor/talk/exam.h"

namespace stagecraft::tools {

inline constexpr const char* kBetween = "between hosts";

/// Checks for one build, equal bits of every processor, and clocks, names and ways between all
/// pairs. `exams`: this machine first; builds and clocks are compared with it.
[[nodiscard]] std::vector<Finding> check_pairs(const std::vector<HostExam>& exams);

}  // namespace stagecraft::tools
