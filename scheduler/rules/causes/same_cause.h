/// tell_together merges violations of one cause, so that a report has a line per fault.
#pragma once

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

/// Merges violations of equal rule and cause into the first of them. Violations without a cause
/// stay alone. The merged violation's message says which are alike, its `more` keeps each, and its
/// cells are those of all.
void tell_together(Violations& violations);

}  // namespace stagecraft::rules
