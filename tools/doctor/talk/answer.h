/// answer is the helper that the doctor starts on another host: `stagecraft doctor --answer`.
#pragma once

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Answers the questions of standard input (talk.h) until it ends. Ends after some minutes in any
/// case, so that no process stays when a link falls silent.
/// Errors: UsageArgument for a line that is no question.
[[nodiscard]] ExitCode answer(Console& console);

}  // namespace stagecraft::tools
