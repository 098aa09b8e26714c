/// SubCommand is one sub-command, with its own options and its own file. CommandGroup holds the
/// sub-commands of one command: of `stagecraft`, and of some of its sub-commands.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {

struct SubCommand {
  std::string_view name;
  std::string_view arguments;  ///< as shown in the help: "DIR NAME"
  std::string_view about;
  /// Runs with the arguments after the name. Errors: Error, which main prints as one message.
  std::function<ExitCode(const std::vector<std::string>& words, Console& console)> run;
};

struct CommandGroup {
  std::string_view command;  ///< the whole name: "stagecraft schedule"
  std::string_view about;    ///< one sentence
  std::vector<SubCommand> commands;
  std::string_view notes;  ///< end of the help: exit status, and the page to read
};

/// Returns "schedule make --help" for "help schedule make", and other words as they are.
[[nodiscard]] std::vector<std::string> help_by_option(std::vector<std::string> words);

/// Runs the command of the first word with the words after it, or prints the help if requested.
/// Without a word it prints the help to standard error and returns wrong usage.
/// Errors: UsageArgument for an unknown word; those of the command.
[[nodiscard]] ExitCode run_sub_command(const CommandGroup& group,
                                       const std::vector<std::string>& words,
                                       Console& console);

}  // namespace stagecraft::tools
