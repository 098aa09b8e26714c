/// machine_checks finds the faults of one machine in its answers. Pure.
#pragma once

#include <vector>

#include "stagecraft/tools/doctor/checks/finding.h"
#include "stagecraft/tools/doctor/talk/exam.h"

namespace stagecraft::tools {

/// Returns one finding per check, in the order of the report. A host that did not answer has one
/// finding. `cluster_workers`: on all hosts.
[[nodiscard]] std::vector<Finding> check_machine(const HostExam& exam, int cluster_workers);

}  // namespace stagecraft::tools
