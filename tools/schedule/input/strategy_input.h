/// strategy_input reads the strategy files of commands.
#pragma once

#include <string>

#include "stagecraft/scheduler/strategy/strategy.h"
#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {

/// Reads a file of either form (strategy_file.h), or standard input for "-". `what` names it in
/// errors: "FILE", "--strategy".
/// Errors: UsageFile; ScheduleParse for a file that looks like a schedule, otherwise with the file,
/// line and column of everything that is no directive.
[[nodiscard]] Strategy read_strategy(const std::string& path,
                                     const std::string& what,
                                     Console& console);

/// Does the same for the content of a file that was read (read_source).
[[nodiscard]] Strategy strategy_in(const std::string& text, const std::string& path);

/// Returns the number of ranks on which a strategy places stages.
[[nodiscard]] int ranks_of(const Strategy& strategy);

}  // namespace stagecraft::tools
