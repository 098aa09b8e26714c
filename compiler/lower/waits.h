/// Waits is the pass that sets the instructions for which each instruction of a list must wait.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Sets the waits.
/// Requires: instructions in issue order, with slots and without waits.
/// Ensures: P-6 on this list, and the orders that P-4 and P-7 require; no wait that streams and the
/// other waits imply.
void set_waits(RankList& list, const PlanTables& tables);

}  // namespace stagecraft
