/// device_order chooses the device of each row of a plan, if links or devices differ or operators
/// are pinned to devices.
///
///     rows     0 - 1 - 2        the link of devices 0 and 1 is slow,
///     devices  0 - 2 - 1        so no two neighbors of the pipeline are on them
///
/// Row r of a schedule without places is device r, so another order of devices is another order of
/// rows, and trainers run it without changes. An order lists for each row the device to which it
/// moves. Pure; any thread.
/// DO-1: no order makes the step of a plan that fits longer.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "stagecraft/scheduler/planners/judge.h"
#include "stagecraft/scheduler/planners/request/planner.h"

namespace stagecraft {

/// DeviceOrder holds, by row, the device to which the row moves.
using DeviceOrder = std::vector<int>;

/// Returns whether transfers depend on the device of a row, because some link between devices
/// differs.
[[nodiscard]] bool links_differ(const LinkCosts& links, int devices);

/// Returns whether one of the devices is faster than another or has more memory.
[[nodiscard]] bool devices_differ(const Costs& costs, int devices);

/// Returns an order in which neighbors of a pipeline have fast links for results of so many bytes:
/// each row takes the nearest device that is left. Every first device is tried, and the best order
/// wins.
[[nodiscard]] DeviceOrder neighbors_order(const LinkCosts& links, int devices, double bytes);

/// Returns the request from the view of rows that move to these devices.
[[nodiscard]] PlanRequest seen_from(PlanRequest request, const DeviceOrder& order);

/// Returns the candidate with its rows moved to their devices.
[[nodiscard]] Candidate moved(Candidate candidate, const DeviceOrder& order);

/// Returns the candidate with the rows of pinned operators on their devices, and the others as near
/// to their own as possible. Returns nothing if a stage or row would have to be on two devices.
/// `graph`: on microbatches of the request.
[[nodiscard]] std::optional<Candidate> on_pinned_devices(const PlanRequest& request,
                                                         const WorkGraph& graph,
                                                         const Candidate& candidate);

/// Exchanges devices of the proposal as long as that makes its step shorter, or makes a plan that
/// does not fit lack fewer bytes, and returns the result. Pinned operators stay. Each exchange that
/// it judges uses one of `tries`. `fitted`: changes what depends on the devices, before two plans
/// are compared.
[[nodiscard]] PlanProposal best_device_order(
    Judge& judge,
    const PlanRequest& request,
    PlanProposal proposal,
    int& tries,
    const std::function<PlanProposal(PlanProposal)>& fitted = {});

}  // namespace stagecraft
