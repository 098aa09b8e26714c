/// man_page writes the manual page of a command, in the macros of man(7).
#pragma once

#include <string>

#include "stagecraft/tools/help/command_tree.h"

namespace stagecraft::pages {

/// Returns "stagecraft-schedule-make": the name of the page of a command.
[[nodiscard]] std::string page_name(const CommandTree& command);

/// Returns the page. `version`: of Stagecraft, for the page's foot.
[[nodiscard]] std::string man_page(const CommandTree& command, const std::string& version);

}  // namespace stagecraft::pages
