/// Where a scheduling command puts what it makes: standard output, or a file that appears whole.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/tools/schedule/console.h"

namespace stagecraft::tools {

/// Writes to standard output for "" or "-", else to the file: beside its place first, then renamed,
/// so that nobody ever sees a part of it and a failure leaves the old one.
/// Errors: UsageFile when it cannot be written.
void write_output(const std::string& path, std::string_view text, Console& console);

}  // namespace stagecraft::tools
