/// What is wrong with one machine, from what it said of itself. Pure.
#pragma once

#include <vector>

#include "stagecraft/tools/doctor/exam.h"
#include "stagecraft/tools/doctor/finding.h"

namespace stagecraft::tools {

/// A finding for each thing that was looked at, in the order of the report; of a host that did not
/// answer, that alone. `cluster_workers`: on all hosts.
[[nodiscard]] std::vector<Finding> check_machine(const HostExam& exam, int cluster_workers);

}  // namespace stagecraft::tools
