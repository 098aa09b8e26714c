/// Lifetimes: the pass that gives every value of a rank a slot, frees it behind its last use and
/// reuses it.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Frees stand on the stream of the last use in the list, or compute behind a receive: there they
/// wait for users on other streams alone.
/// Requires: instructions in issue order, reads and writes with their values and no slots yet.
/// Ensures:  P-4 on this rank, but for the waits; `slots` is the largest number of values alive at
///           once.
void assign_slots(RankPlan& rank);

}  // namespace stagecraft
