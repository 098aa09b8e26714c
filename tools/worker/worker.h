/// worker is `stagecraft worker`: the generic worker process, which runs the stages of any program.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Joins a cluster and works for it until its driver has gone. Clusters usually start it.
/// Errors: UsageArgument; those of run_worker_process().
[[nodiscard]] ExitCode worker(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
