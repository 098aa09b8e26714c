/// credential_checks finds the present and coming faults of a folder of credentials in its report.
/// Pure.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tools/doctor/checks/finding.h"

namespace stagecraft::tools {

/// Returns the findings. `dir`: the report's folder. `now`: decides what comes soon.
[[nodiscard]] std::vector<Finding> check_credentials(const security::CredentialsReport& report,
                                                     const std::string& dir,
                                                     security::TimePoint now);

}  // namespace stagecraft::tools
