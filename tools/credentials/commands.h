/// commands.h lists the sub-commands of `stagecraft credentials`, one file each.
///
/// Each takes the arguments after its name, writes through the console, and returns the exit
/// status: 0 for good, 1 if something is wrong with the credentials shown. Errors: Error, which
/// main prints as one message; a folder that cannot be used and wrong usage end with 2. No command
/// prints a key.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// `make DIR`: makes the credentials of a new cluster.
[[nodiscard]] ExitCode make_cluster_credentials(const std::vector<std::string>& words,
                                                Console& console);
/// `renew DIR NAME`: makes a new certificate for a process, or with `--add` new credentials.
[[nodiscard]] ExitCode renew_credentials(const std::vector<std::string>& words, Console& console);
/// `show DIR`: shows the processes, the ends of their certificates, and all faults.
[[nodiscard]] ExitCode show_credentials(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
