/// Lifetimes is the pass that gives every value of a list a slot, frees the slot after the value's
/// last use and reuses it.
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Adds the slots. A Free is on the stream of the value's last use in the list, or on compute if
/// that use is a receive. There it waits only for users on other streams.
/// Requires: a list as emit() makes it: instructions in issue order, each slot the number of a
/// value, `slots` their count.
/// Ensures: P-4 on this list, except for the waits; `slots` is the largest number of values alive
/// at once.
void assign_slots(RankList& list);

}  // namespace stagecraft
