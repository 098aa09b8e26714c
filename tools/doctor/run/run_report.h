/// run_report writes a RunDiagnosis, for people and for programs.
#pragma once

#include <string>

#include "stagecraft/tools/doctor/run/run_diagnosis.h"

namespace stagecraft::tools {

[[nodiscard]] std::string run_report_text(const RunDiagnosis& run);

/// Returns one JSON object (docs/json.md).
[[nodiscard]] std::string run_report_json(const RunDiagnosis& run);

}  // namespace stagecraft::tools
