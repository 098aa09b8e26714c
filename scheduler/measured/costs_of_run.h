/// costs_of_run turns the measurements of a run into costs, to simulate or build other schedules of
/// the same stages.
///
///     run of 1F1B       F and B of every stage, the links    measured
///     costs of the run  F, B, I and W, the links             zb-auto asks for I and W
///
/// Pure; any thread. Units: those of the measurements.
#pragma once

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns `known` with the run's times of stages and links in place of its own.
/// If a stage ran its backward whole, I and W take the shares of B that they have in `known`, which
/// may together exceed the whole; if `known` has none, each takes half. If a stage ran halves, B is
/// computed the same way in reverse. A half that does nothing takes no time, so that a reader
/// without the graph gets the same times. If ranks shared processors during the run, the times
/// already contain that, so the device does not state it again.
/// `graph`: of the schedule that ran. Requires: measured.steps() > 0.
[[nodiscard]] Costs costs_of_run(const Measurements& measured,
                                 const Costs& known,
                                 const StageGraph& graph);

/// Moves the time of halves that do nothing to the other halves, so that the two halves of a
/// backward together take as long as before. A simulation with the model's graph does the same.
/// After this call, every reader of the costs gets these times.
/// Requires: times of every stage of the graph.
void settle_halves(StageCosts& costs, const StageGraph& graph);

}  // namespace stagecraft
