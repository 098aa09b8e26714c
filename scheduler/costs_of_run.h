/// costs_of_run: what a run measured, as costs that other schedules of the same stages can be
/// simulated with and made for.
///
///     run of 1F1B       F and B of every stage, the links    measured
///     costs of the run  F, B, I and W, the links             zb-auto asks for I and W
///
/// Pure; any thread. Units: those of the measurements.
#pragma once

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/measurements.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Returns `known` with the times of the run's stages and links in the place of its own. Where a
/// stage ran its backward whole, I and W take the shares of it that they take of B in `known`,
/// which may be more than the whole together (half each where that knows none), and the other way
/// round; a half that does nothing takes no time, so that the costs say the same to those who do
/// not know which halves these are. Ranks have shared processors while it was measured: the times
/// say it, so the device does not say it again.
/// `graph`: of the schedule that ran. Requires: measured.steps() > 0.
[[nodiscard]] Costs costs_of_run(const Measurements& measured,
                                 const Costs& known,
                                 const StageGraph& graph);

/// Puts the time of halves that do nothing down to the others, so that a backward's two take as
/// long together as before: who simulates with the model's graph has it so, and now everybody.
/// Requires: times of every stage of the graph.
void settle_halves(StageCosts& costs, const StageGraph& graph);

}  // namespace stagecraft
