/// A simulated step as people read it: the rows, why they stand idle, and what decides the end.
#pragma once

#include <string>

#include "stagecraft/scheduler/simulate.h"

namespace stagecraft::tools {

struct TimelineTextOptions {
  int width = 100;     ///< of the screen
  bool bytes = false;  ///< whether the costs know what is held
};

/// Long schedules are cut to what fits a screen, and say so.
[[nodiscard]] std::string timeline_text(const Timeline& timeline,
                                        const TimelineTextOptions& options);

}  // namespace stagecraft::tools
