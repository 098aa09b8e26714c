/// timeline_text writes a simulated step for people: the rows, the causes of their idle time, and
/// the tasks that decide the end.
#pragma once

#include <string>

#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft::tools {

struct TimelineTextOptions {
  int width = 100;     ///< of the screen
  bool bytes = false;  ///< the costs know the bytes that are held
};

/// Returns the text. Cuts long schedules to a screen, with a note.
[[nodiscard]] std::string timeline_text(const Timeline& timeline,
                                        const TimelineTextOptions& options);

}  // namespace stagecraft::tools
