/// describe returns the abilities of a command as one JSON object: its options, or its
/// sub-commands.
///
/// Every command prints it for the word kDescribe, which no help lists. The build makes the manual
/// pages and the completions of shells from it (pages.cc). Groups of commands: sub_command.cc.
#pragma once

#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace stagecraft::tools {

inline constexpr std::string_view kDescribe = "--describe";

/// Returns name, usage, about, notes, and options: each with label, names, value ("FILE", or empty
/// for a flag), choices, repeats, text and group; and arguments, in the same form. `behind`: as in
/// usage_text().
[[nodiscard]] std::string describe(const CLI::App& app, const std::string& behind);

}  // namespace stagecraft::tools
