/// The words after `stagecraft credentials`, one file each.
///
/// Each takes the words after its name, writes through the console, and returns the exit status: 0
/// good, 1 something is wrong with the credentials shown. Errors: Error, printed by main as one
/// message; a folder that cannot be used and wrong usage end with 2. None prints a key.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

/// `make DIR`: the credentials of a new cluster.
[[nodiscard]] ExitCode make_cluster_credentials(const std::vector<std::string>& words,
                                                Console& console);
/// `renew DIR MEMBER`: another certificate for a member, or with `--add` another member.
[[nodiscard]] ExitCode renew_credentials(const std::vector<std::string>& words, Console& console);
/// `show DIR`: who is in it, until when, and everything that is wrong.
[[nodiscard]] ExitCode show_credentials(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
