/// Waits is the pass that sets the instructions for which each instruction of a rank must wait.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Requires: instructions in issue order, with slots and without waits.
/// Ensures: P-6 on this rank, and the order that P-4 requires; no wait that streams and the other
///          waits imply.
void set_waits(RankPlan& rank);

}  // namespace stagecraft
