/// report writes the doctor's findings, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/doctor/checks/finding.h"
#include "stagecraft/tools/doctor/talk/exam.h"

namespace stagecraft::tools {

[[nodiscard]] bool has_problem(const std::vector<Finding>& findings);

/// Returns a table, grouped by host in the order of their first findings. Below each finding that
/// is not good, a line says how to repair it.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);

/// Returns one JSON object: the findings, and the facts of every host from which they follow.
[[nodiscard]] std::string findings_json(const std::vector<Finding>& findings,
                                        const std::vector<HostExam>& exams);

}  // namespace stagecraft::tools
