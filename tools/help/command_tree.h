/// CommandTree is a command with its options or its sub-commands, as the command describes itself
/// (help/describe.h).
///
/// read_commands() makes it once, by running the command; then it is written as pages.
#pragma once

#include <string>
#include <vector>

namespace stagecraft::pages {

struct Option {
  std::string label;                 ///< "-o, --output FILE"
  std::vector<std::string> names;    ///< "-o", "--output"; none for an argument
  std::string value;                 ///< "FILE"; empty for a flag
  std::vector<std::string> choices;  ///< values that it takes literally
  bool repeats = false;
  std::string text;
  std::string group;
};

struct CommandTree {
  std::string name;       ///< the whole one: "stagecraft schedule make"
  std::string arguments;  ///< as in the list of its parent
  std::string summary;    ///< likewise
  std::string usage;
  std::string about;
  std::string notes;
  std::vector<Option> arguments_of;  ///< positional
  std::vector<Option> options;
  std::vector<CommandTree> commands;

  /// Returns the last word of the name.
  [[nodiscard]] std::string word() const;
};

/// Returns the command of this program with all commands below it.
/// Errors: std::runtime_error if it cannot be run or describes nothing.
[[nodiscard]] CommandTree read_commands(const std::string& program);

/// Calls `visit` with a command and with all commands below it.
template <class Visit>
void for_each_command(const CommandTree& command, const Visit& visit) {
  visit(command);
  for (const CommandTree& below : command.commands) {
    for_each_command(below, visit);
  }
}

/// Return whether an option takes a value, which may be a file, or a folder.
[[nodiscard]] bool takes_value(const Option& option);
[[nodiscard]] bool takes_file(const Option& option);
[[nodiscard]] bool takes_folder(const Option& option);

}  // namespace stagecraft::pages
