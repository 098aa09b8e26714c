/// check_groups checks what the lists of a group's members must have in common (P-7, P-11), and
/// what the ranks of a tie have.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"

namespace stagecraft {

/// Adds a sentence for each breach: members that do not take part, others that do, streams of other
/// names, another number of rounds, parts of a tie on ranks without their stages or with other
/// shards. Requires: a plan whose names are sound (P-9).
void check_groups(const Plan& plan, std::vector<std::string>& faults);

/// Returns whether the ranks of each set of a tie have the same shard of its stages' gradients, or
/// all of them (P-7). Requires: a set has a rank for each stage.
[[nodiscard]] bool have_equal_shards(const PlanTables& tables, const PlanGroup& tie);

}  // namespace stagecraft
