/// guarded: the one place where a failure of a command becomes a message on standard error and an
/// exit status. No stack traces: whatever went wrong has to say so in words.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"
#include "stagecraft/tools/sub_command.h"

namespace stagecraft::tools {

/// Who knows a lack of memory by what was thrown, and says what to do.
using LackOfMemory = std::optional<Error> (*)(const std::exception& thrown,
                                              std::string_view what_to_do);

/// Returns the command with a lack of memory as an error that says what to ask less of: `appetite`.
[[nodiscard]] decltype(SubCommand::run) thrifty(decltype(SubCommand::run) run,
                                                const std::string& appetite,
                                                LackOfMemory lack);

/// Returns what `command` returns, or the status of what it throws, which has been told.
[[nodiscard]] ExitCode guarded(const std::function<ExitCode()>& command, Console& console);

}  // namespace stagecraft::tools
