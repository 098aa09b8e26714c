/// What is wrong with a folder of credentials, or soon will be, from what was found in it. Pure.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tools/doctor/finding.h"

namespace stagecraft::tools {

/// `dir`: of the report. `now`: by which "soon" is judged.
[[nodiscard]] std::vector<Finding> check_credentials(const security::CredentialsReport& report,
                                                     const std::string& dir,
                                                     security::TimePoint now);

}  // namespace stagecraft::tools
