/// A simulated step as people read it: the rows, why they stand idle, and what decides the end.
#pragma once

#include <string>

#include "stagecraft/scheduler/simulate.h"

namespace stagecraft::tools {

/// Long schedules are cut to what fits a screen, and say so. `width`: of the screen.
[[nodiscard]] std::string timeline_text(const Timeline& timeline, int width);

}  // namespace stagecraft::tools
