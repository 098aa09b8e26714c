/// accumulation checks whether a schedule keeps the order of work whose result depends on order:
/// adding up the gradients of a stage, and running the forwards of a stage that keeps statistics.
///
/// Sums in floating point depend on their order. A schedule that adds every stage's microbatches in
/// ascending order, on one copy of the stage, gives the bits of one process that takes the
/// microbatches one after the other. Running statistics depend on the order of the forwards in the
/// same way. Pure; any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns a sentence with the reason why the sums differ from those of one process; nothing if
/// they do not differ. Tasks that do nothing (StageGraph::is_surplus) add nothing.
[[nodiscard]] std::optional<std::string> reordered_accumulation(const Schedule& schedule,
                                                                const StageGraph& graph);

/// LateForward is a forward that a stage runs too late for the order 0, 1, 2, ...
struct LateForward {
  StageId stage;
  Microbatch microbatch;
  Microbatch after;  ///< a larger microbatch, which runs earlier

  friend bool operator==(const LateForward&, const LateForward&) = default;
};

/// Returns the first late forward of every stage that has one, ordered by stage.
[[nodiscard]] std::vector<LateForward> late_forwards(const Schedule& schedule);

}  // namespace stagecraft
