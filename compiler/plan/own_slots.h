/// own_slots gives every value of a plan a slot of its own, so that a rank may run its tasks in any
/// order (Dispatch::Decided).
#pragma once

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Returns the plan with these slots. A step then has as many slots as it has values; their memory
/// is free after their last use, as before.
[[nodiscard]] Plan with_own_slots(Plan plan);

}  // namespace stagecraft
