/// version_text names this build.
#pragma once

#include <string_view>

namespace stagecraft::tools {

/// Returns "0.1.0 (abcdef123)": the version, and the commit at which the build was configured. A
/// build of sources without their history has no commit: "0.1.0".
[[nodiscard]] std::string_view version_text();

}  // namespace stagecraft::tools
