/// Where a command puts what it makes: standard output, or a file that appears whole.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/tools/console.h"

namespace stagecraft::tools {

/// Prints for "" or "-". Else writes a file that appears whole (base/whole_file.h): a failure
/// leaves the old one. What is no file but can be written to, such as a pipe or a device, gets the
/// text at its end. Errors: UsageFile when it cannot be written.
void write_output(const std::string& path, std::string_view text, Console& console);

}  // namespace stagecraft::tools
