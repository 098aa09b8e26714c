/// schedule_figures computes the few figures by which schedules are compared.
///
/// The unit is one device's share of the model, for any number of stages in a share. With S stages
/// on P devices, a stage takes P / S of the time and of the activations of such a share. So the
/// figures of 1F1B and of interleaved 1F1B can be compared. Pure.
#pragma once

#include <cstddef>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct ScheduleFigures {
  int stages = 0;  ///< of one copy of the model
  double makespan = 0;
  double bubble = 0;             ///< idle time of all devices over devices x makespan
  int peak_in_flight = 0;        ///< as simulate() counts it: stages x microbatches, largest row
  double peak_microbatches = 0;  ///< the same number in microbatches of one device's share
  double peak_bytes = 0;         ///< of the largest row; 0 if the costs contain no bytes
  std::size_t messages = 0;      ///< values sent from one device to another in a step
};

/// Returns the figures. `costs`: of one stage per device, or of the stages that they list
/// (cut_costs.h).
/// Requires: validate() finds nothing.
/// Errors: those of simulate().
[[nodiscard]] ScheduleFigures schedule_figures(const Schedule& schedule,
                                               const StageGraph& graph,
                                               const Costs& costs);

}  // namespace stagecraft
