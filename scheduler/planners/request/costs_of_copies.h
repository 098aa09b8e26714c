/// costs_of_copies returns the costs of the stages of a schedule that runs several copies of a
/// model.
///
///     stages of the cut   0 1          costs of 0 1
///     of the schedule     0 1 | 2 3    costs of 0 1 0 1
///
/// Pure; any thread.
#pragma once

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {

/// Returns durations, bytes held and bytes handed over for every stage of the schedule.
/// Requires: `of_cut` has costs for every stage of the model.
[[nodiscard]] Costs costs_of_copies(const Costs& of_cut, const Layout& layout);

}  // namespace stagecraft
