/// Lifetimes is the pass that gives every value of a rank a slot, frees the slot after the value's
/// last use and reuses it.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// A Free is on the stream of the value's last use in the list, or on compute if that use is a
/// receive. There it waits only for users on other streams.
/// Requires: instructions in issue order, reads and writes with their values and no slots yet.
/// Ensures: P-4 on this rank, except for the waits; `slots` is the largest number of values alive
///          at once.
void assign_slots(RankPlan& rank);

}  // namespace stagecraft
