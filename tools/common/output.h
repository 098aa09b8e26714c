/// write_output writes the output of a command to standard output, or to a file that appears whole.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/tools/common/console.h"

namespace stagecraft::tools {

/// Prints if `path` is "" or "-". Otherwise writes a file that appears whole (whole_file.h): a
/// failure leaves the old one. A pipe or a device gets the text appended.
/// Errors: UsageFile if it cannot be written.
void write_output(const std::string& path, std::string_view text, Console& console);

}  // namespace stagecraft::tools
