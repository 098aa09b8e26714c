/// compare_page writes the figures of compared schedules as one HTML file: a table with a bar for
/// each figure. It needs no script and can be printed.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/schedule/input/candidates.h"

namespace stagecraft::tools {

/// Lists schedules without figures below, with their reasons. A bar is a figure's share of the
/// largest in its column. `bytes`: the costs know the bytes that are held.
[[nodiscard]] std::string compare_page(const std::string& title,
                                       const std::vector<Candidate>& candidates,
                                       bool bytes);

}  // namespace stagecraft::tools
