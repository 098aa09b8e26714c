/// issue finishes a training DAG: it puts the nodes of every stream in order, leaves out gathers
/// and scatters that are needless in that order, and puts all nodes of a rank list in the one order
/// in which its ranks issue them.
///
/// Lowering turns the result into instructions, and `stagecraft dag show` prints it.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/issue/stream_order.h"

namespace stagecraft {

struct IssuedDag {
  TrainingDag dag;
  std::vector<StreamOrder> streams;     ///< by rank list
  std::vector<std::vector<int>> lists;  ///< nodes by rank list, in issue order
};

/// Requires: apply() has made the DAG.
/// Errors: ScheduleInvalid if copies in the schedule share gradients or weights and their rows do
/// not come to the same collectives in the same order.
[[nodiscard]] IssuedDag issue(TrainingDag dag);

}  // namespace stagecraft
