/// SubCommand: one word of a command line, with its own options and its own file. CommandGroup: the
/// words that one command knows: those after `stagecraft`, and those after some of these.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {

struct SubCommand {
  std::string_view name;
  std::string_view arguments;  ///< as the help names them: "DIR MEMBER"
  std::string_view about;
  /// Runs with the words after the name. Errors: Error, printed by main as one message.
  std::function<ExitCode(const std::vector<std::string>& words, Console& console)> run;
};

struct CommandGroup {
  std::string_view command;  ///< whole: "stagecraft schedule"
  std::string_view about;    ///< a sentence
  int column = 0;            ///< of the help: where the abouts begin
  std::vector<SubCommand> commands;
  std::string_view notes;  ///< the help's end: exit status, and where to read on
};

/// Runs the command of the first word with those behind it, or prints the help that it asks for.
/// Without a word the help goes to standard error, as wrong usage.
/// Errors: UsageArgument for a word that no command has; those of the command.
[[nodiscard]] ExitCode run_sub_command(const CommandGroup& group,
                                       const std::vector<std::string>& words,
                                       Console& console);

}  // namespace stagecraft::tools
