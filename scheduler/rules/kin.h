/// tell_together: violations of one cause as one, so that a report has a line per fault.
#pragma once

#include "stagecraft/scheduler/rules/rules.h"

namespace stagecraft::rules {

/// Puts violations of equal rule and cause (none: on its own) into the first of them: its message
/// says which are alike, its `more` keeps each, its cells are those of all.
void tell_together(Violations& violations);

}  // namespace stagecraft::rules
