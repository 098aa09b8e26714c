/// find_exchange: the one pair of cells of a row whose exchange lets a deadlocked list run.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/scheduler/rules/rules.h"

namespace stagecraft::rules {

/// Tries pairs with at least one cell on `cycle` (entry numbers): no other exchange can break it.
/// Pairs that are both on it come first, near ones before far ones. `done`: the entries that run
/// before the rows get stuck. Cost: bounded; in a large schedule a far exchange may go unfound.
[[nodiscard]] std::optional<Exchange> find_exchange(const Input& in,
                                                    std::vector<int> cycle,
                                                    const std::vector<bool>& done);

}  // namespace stagecraft::rules
