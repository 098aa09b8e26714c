/// early_values computes bytes that rows hold in addition to the memory model: values that arrive
/// before the task that takes them begins, and gradients that wait on their row for another stage.
///
///     row 0   0F0 0F1 0F2 ...
///     row 1       1F0----- 1F1-----     the results of 0F1 and 0F2 wait at row 1
///
/// A rank of a row takes a value once for each of its units (LA-3).
/// The memory model counts results of forwards with the stage that makes them, so those that stay
/// on their row are not counted again.
/// Pure; any thread.
#pragma once

#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// RowPeak holds the most bytes that a row holds at once.
struct RowPeak {
  double own = 0;  ///< without values that wait to be received
  double all = 0;

  friend bool operator==(const RowPeak&, const RowPeak&) = default;
};

/// Returns the peak of every row, waiting values included. A value takes memory at the receiver
/// from the time it is sent.
/// Requires: the timeline is of this schedule, graph and costs.
[[nodiscard]] std::vector<RowPeak> peaks_with_early_values(const Timeline& timeline,
                                                           const Schedule& schedule,
                                                           const StageGraph& graph,
                                                           const LinkCosts& links);

}  // namespace stagecraft
