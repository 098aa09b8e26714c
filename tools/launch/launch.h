/// launch is `stagecraft launch`: it runs a program as the driver of workers on many hosts.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Sets the variables that Cluster::from_env and `stagecraft train` read, and becomes the program.
/// In a step of a batch system the first process does so, and the others are its workers. Returns
/// only if it ran no program, or as a worker whose driver has gone.
/// Errors: UsageArgument; UsageFile for hosts that cannot be read and a program that cannot be run;
///         those of run_worker_process().
[[nodiscard]] ExitCode launch(const std::vector<std::string>& arguments, Console& console);

}  // namespace stagecraft::tools
