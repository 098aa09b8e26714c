/// costs_of_copies returns the costs of a schedule that runs several copies of a model or of its
/// stages.
///
///     stages of the cut   0 1          costs of 0 1
///     of the schedule     0 1 | 2 3    costs of 0 1 0 1
///
///     row                 0      1     (LA-3)
///     devices             0, 2   1, 3  the link 0-1 is the slower one of 0-1 and 2-3
///
/// Pure; any thread.
#pragma once

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {

/// Returns durations, bytes held and bytes handed over for every stage of the schedule.
/// Requires: `of_cut` has costs for every stage of the model.
[[nodiscard]] Costs costs_of_copies(const Costs& of_cut, const Layout& layout);

/// Returns the links between rows, of links between devices: between two rows, the slowest of the
/// links that carry a unit.
[[nodiscard]] LinkCosts links_of_rows(const LinkCosts& of_devices, const Layout& layout);

}  // namespace stagecraft
