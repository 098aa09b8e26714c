/// What the doctor found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/doctor/exam.h"
#include "stagecraft/tools/doctor/finding.h"

namespace stagecraft::tools {

[[nodiscard]] bool has_problem(const std::vector<Finding>& findings);

/// A table, grouped by host in the order in which hosts first come; below what is no more than
/// good, how to mend it.
[[nodiscard]] std::string findings_text(const std::vector<Finding>& findings);

/// One JSON object: findings as above, and of every host the facts that they were judged from.
[[nodiscard]] std::string findings_json(const std::vector<Finding>& findings,
                                        const std::vector<HostExam>& exams);

}  // namespace stagecraft::tools
