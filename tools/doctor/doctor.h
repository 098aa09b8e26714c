/// doctor is `stagecraft doctor`: it checks the usual faults of a cluster's machines, and says how
/// to repair them.
///
///     ask_hosts     gets every machine's facts, clocks, and ways between all pairs   (ask_hosts.h)
///     check_...     judges them: good, worth knowing or a problem                    (*_checks.h)
///     findings_...  writes the findings for people, or as JSON                       (report.h)
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Runs the command. Returns Failed if there is a problem.
/// Errors: UsageArgument; UsageFile for hosts or credentials that cannot be read.
[[nodiscard]] ExitCode doctor(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
