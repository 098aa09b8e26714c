/// check_groups checks what the lists of a group's members must have in common (P-7, P-11).
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Adds a sentence for each breach: members that do not take part, others that do, streams of other
/// names, another number of rounds, parts of a tie on ranks without their stages. Requires: a plan
/// whose names are sound (P-9).
void check_groups(const Plan& plan, std::vector<std::string>& faults);

}  // namespace stagecraft
