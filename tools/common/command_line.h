/// command_line has the functions by which the sub-commands read their arguments: help, unknown
/// options with a suggestion, and messages in our words instead of CLI11's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Sets the options of `app` from the arguments. If they ask for the help or for the description
/// (describe.h), it returns that text instead.
/// `behind`: the part of the command line that follows and that `app` does not read, "-- PROGRAM".
/// Requires: the name of `app` is the whole command, e.g. "stagecraft schedule list".
/// Errors: UsageArgument for an option or argument that is unknown, missing or malformed.
[[nodiscard]] std::optional<std::string> parse_command_line(
    CLI::App& app, const std::vector<std::string>& arguments, const std::string& behind = "");

/// Returns the values of a repeatable option that takes KEY=VALUE, by key.
/// Errors: UsageArgument for another form and for a repeated key.
[[nodiscard]] std::map<std::string, std::string> key_values(const std::string& command,
                                                            const std::string& option,
                                                            const std::vector<std::string>& words);

/// Throws UsageArgument with the message and a hint where to read on. `command`: as in
/// parse_command_line.
[[noreturn]] void wrong_usage(const std::string& command, const std::string& message);

}  // namespace stagecraft::tools
