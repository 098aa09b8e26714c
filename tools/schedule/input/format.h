/// format names the file formats of the registry for options and help texts.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/formats/registry.h"

namespace stagecraft::tools {

/// Returns "text, list or json", with the names of all formats.
[[nodiscard]] std::string format_names();

/// Returns one line for each format: its name and its summary.
[[nodiscard]] std::string format_lines();

/// Returns the format that an option of a command names.
/// Errors: UsageArgument for another word, naming the option and the command that lists the
/// formats.
[[nodiscard]] const ScheduleFormat& format_of(const std::string& command,
                                              std::string_view option,
                                              std::string_view name);

/// Returns the name of the format that lays out communication.
[[nodiscard]] std::string_view communication_format();

}  // namespace stagecraft::tools
