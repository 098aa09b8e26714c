/// What the sub-commands share when they read their words: help, unknown options with a suggestion,
/// and messages in our own words instead of CLI11's.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace stagecraft::tools {

/// Fills what `app` names from the words, or returns the help text where they ask for it.
/// Requires: the name of `app` is the whole command, e.g. "stagecraft schedule list".
/// Errors: UsageArgument for an unknown option or argument, a missing or a malformed one.
[[nodiscard]] std::optional<std::string> parse_command_line(
    CLI::App& app, const std::vector<std::string>& arguments);

/// Returns the words of an option that takes KEY=VALUE and may be repeated, by key.
/// Errors: UsageArgument for another form and for a key that comes twice.
[[nodiscard]] std::map<std::string, std::string> key_values(const std::string& command,
                                                            const std::string& option,
                                                            const std::vector<std::string>& words);

/// Throws UsageArgument: the message, and where to read on. `command`: as in parse_command_line.
[[noreturn]] void wrong_usage(const std::string& command, const std::string& message);

}  // namespace stagecraft::tools
