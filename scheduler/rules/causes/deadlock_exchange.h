/// find_deadlock_exchange finds the one pair of cells of a row whose exchange lets a deadlocked
/// list run.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

/// Tries pairs with at least one cell on `cycle` (entry numbers); no other exchange can break it.
/// Pairs with both cells on it come first, near pairs before far ones. `done`: the entries that run
/// before the rows get stuck.
/// Cost: bounded, so in a large schedule it may miss a far exchange.
[[nodiscard]] std::optional<Exchange> find_deadlock_exchange(const RuleInput& in,
                                                             std::vector<int> cycle,
                                                             const std::vector<bool>& done);

}  // namespace stagecraft::rules
