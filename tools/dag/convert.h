/// convert is `stagecraft dag convert`: it writes a strategy in another form.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

/// Reads a strategy of either form (strategy_file.h) or a schedule of any format, and writes the
/// strategy.
/// Errors: those of read_dag_input(); ScheduleInvalid for a schedule that breaks a rule;
/// ScheduleParameter for what the form has no words for.
[[nodiscard]] ExitCode convert_strategy(const std::vector<std::string>& words, Console& console);

}  // namespace stagecraft::tools
