/// device_order: which device runs which row of a plan, where links differ or operators are wanted
/// on certain devices.
///
///     rows     0 - 1 - 2        the link of devices 0 and 1 is slow,
///     devices  0 - 2 - 1        so no two neighbors of the pipeline are on them
///
/// Row r of a schedule is device r. So another order of devices is another order of rows, which
/// trainers run as it stands. An order lists for each row the device to which it moves. Pure; any
/// thread.
/// DO-1: no order makes a step longer.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/scheduler/planners/planner.h"
#include "stagecraft/scheduler/planners/proposal.h"

namespace stagecraft {

/// By row: the device to which it moves.
using DeviceOrder = std::vector<int>;

/// Whether it matters for transfers which device a row is: some link among them differs.
[[nodiscard]] bool links_differ(const LinkCosts& links, int devices);

/// Returns an order in which neighbors of a pipeline have fast links for results of so many bytes:
/// each row's device is the nearest that is left, from the best first one.
[[nodiscard]] DeviceOrder neighbors_order(const LinkCosts& links, int devices, double bytes);

/// Returns the request as rows see it that move to these devices.
[[nodiscard]] PlanRequest seen_from(PlanRequest request, const DeviceOrder& order);

/// Returns the candidate with its rows moved to their devices.
[[nodiscard]] Candidate moved(Candidate candidate, const DeviceOrder& order);

/// Returns the candidate with the pinned operators' rows on their devices, the others as near to
/// their own as may be; nothing where one stage or row would have to be on two devices.
/// `graph`: on microbatches of the request.
[[nodiscard]] std::optional<Candidate> on_pinned_devices(const PlanRequest& request,
                                                         const WorkGraph& graph,
                                                         const Candidate& candidate);

/// Returns the proposal with devices exchanged while that makes its step shorter; pinned operators
/// stay where they are. Spends one of `tries` for each exchange that it judges.
[[nodiscard]] PlanProposal best_device_order(Judge& judge,
                                             const PlanRequest& request,
                                             PlanProposal proposal,
                                             int& tries);

}  // namespace stagecraft
