/// Waits: the pass that says what each instruction of a rank must wait for.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Requires: instructions in issue order, with slots and without waits.
/// Ensures:  P-6 on this rank, and the order that P-4 asks for; no wait that streams and the other
///           waits imply.
void set_waits(RankPlan& rank);

}  // namespace stagecraft
