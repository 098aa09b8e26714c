/// The name of a run, by which workers that outlive its command know it again.
#pragma once

#include <string>

namespace stagecraft::tools {

/// Returns the name in this folder. Makes the folder, and a name that no other run has, if there is
/// none. Errors: UsageFile.
[[nodiscard]] std::string run_name_in(const std::string& folder);

}  // namespace stagecraft::tools
