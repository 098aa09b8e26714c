/// find_order_exchange finds the one pair of cells of a row whose exchange repairs the violations
/// of order.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/rules/parts/validate_options.h"
#include "stagecraft/scheduler/rules/parts/violation.h"

namespace stagecraft::rules {

/// Returns whether another order of the cells could avoid the violation (other than V29). A
/// violation of V20 to V23 names no other cell if everything that its tasks lack is missing.
[[nodiscard]] bool about_order(const Violation& v);

/// Judge finds the violations of a schedule under the same graph and options.
using Judge = std::function<std::vector<Violation>(const Schedule&)>;

/// Returns an exchange after which `found`, the violations of the schedule, shrink to those that no
/// order of cells can repair (a task that is missing, appears twice or is in a wrong place).
/// Returns nothing if there is no such exchange or none of `found` is about order. Not for V29,
/// which find_deadlock_exchange() repairs.
/// Cost: bounded, so in a large schedule it may miss an exchange.
[[nodiscard]] std::optional<Exchange> find_order_exchange(const Schedule& schedule,
                                                          const StageGraph& graph,
                                                          const ValidateOptions& options,
                                                          const std::vector<Violation>& found,
                                                          const Judge& judge);

}  // namespace stagecraft::rules
