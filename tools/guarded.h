/// guarded is the one place where a failure of a command becomes a message on standard error and an
/// exit status. It prints no stack traces: errors explain themselves in words.
#pragma once

#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/sub_command.h"

namespace stagecraft::tools {

/// LackOfMemory recognizes a lack of memory by the exception, and returns an error that says what
/// to do.
using LackOfMemory = std::optional<Error> (*)(const std::exception& thrown,
                                              std::string_view what_to_do);

/// Returns the command with a lack of memory turned into an error that names the values to reduce:
/// `appetite`.
[[nodiscard]] decltype(SubCommand::run) thrifty(decltype(SubCommand::run) run,
                                                const std::string& appetite,
                                                LackOfMemory lack);

/// Returns the status of `command`. If it throws, reports the error and returns its status.
[[nodiscard]] ExitCode guarded(const std::function<ExitCode()>& command, Console& console);

}  // namespace stagecraft::tools
