/// dag is `stagecraft dag`: it shows the training DAG of a strategy or a schedule.
///
/// Without a model the command needs no LibTorch. With one, and for help on its options, the
/// program becomes the runtime's (stagecraft.cc), which has the same command with a further `show`.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"
#include "stagecraft/tools/common/sub_command.h"

namespace stagecraft::tools {

/// Runs the command of the first word, for stages without a model.
/// Errors: UsageArgument, UsageFile; those of the command.
[[nodiscard]] ExitCode dag(const std::vector<std::string>& arguments, Console& console);

/// Does the same with another function for `dag show`.
[[nodiscard]] ExitCode dag_with(decltype(SubCommand::run) show,
                                const std::vector<std::string>& arguments,
                                Console& console);

/// Return whether the arguments of `stagecraft dag` name a model, or ask for the help of `show`,
/// which lists the options of models.
[[nodiscard]] bool names_model(const std::vector<std::string>& arguments);
[[nodiscard]] bool asks_for_options(const std::vector<std::string>& arguments);

}  // namespace stagecraft::tools
