/// find_repair: the one pair of cells of a row whose exchange sets right what the order of cells
/// has broken.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft::rules {

/// Whether another order of the cells could avoid the violation (V29 apart): V20 to V23 name only
/// one cell, and one of each of their kin, when all they lack is missing.
[[nodiscard]] bool about_order(const Violation& v);

/// Finds the violations of a schedule under the same graph and options.
using Judge = std::function<std::vector<Violation>(const Schedule&)>;

/// Returns an exchange after which `found`, the violations of the schedule, shrink to those that no
/// order of cells can repair (something missing, twice or in a wrong place), or nothing when there
/// is none or none of `found` is about order. Not for V29, which find_exchange() repairs.
/// Cost: bounded; in a large schedule an exchange may go unfound.
[[nodiscard]] std::optional<Exchange> find_repair(const Schedule& schedule,
                                                  const StageGraph& graph,
                                                  const ValidateOptions& options,
                                                  const std::vector<Violation>& found,
                                                  const Judge& judge);

}  // namespace stagecraft::rules
