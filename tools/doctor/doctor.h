/// `stagecraft doctor`: checks what commonly fails on the machines of a cluster, and says how to
/// mend it.
///
///     ask_hosts     every machine's facts, clocks, and ways between all pairs    (ask_hosts.h)
///     check_...     from them what is good, worth knowing or a problem           (*_checks.h)
///     findings_...  for people, or as JSON                                       (report.h)
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// Failed where there is a problem.
/// Errors: UsageArgument; UsageFile for hosts or credentials that cannot be read.
[[nodiscard]] ExitCode doctor(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
