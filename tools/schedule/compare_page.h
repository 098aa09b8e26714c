/// The figures of compared schedules as one HTML file: a table with a bar for each figure, which
/// needs no script and can be printed.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/tools/schedule/candidates.h"

namespace stagecraft::tools {

/// Those without figures are listed below with their reasons. A bar is a figure's share of the
/// largest in its column. `bytes`: whether the costs know what is held.
[[nodiscard]] std::string compare_page(const std::string& title,
                                       const std::vector<Candidate>& candidates,
                                       bool bytes);

}  // namespace stagecraft::tools
