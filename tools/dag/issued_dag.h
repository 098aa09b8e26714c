/// IssuedDag: a training DAG with the order of its streams and the list that every rank issues.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/dag.h"
#include "stagecraft/scheduler/dag/stream_order.h"

namespace stagecraft::tools {

struct IssuedDag {
  TrainingDag dag;
  std::vector<StreamOrder> streams;     ///< by rank list
  std::vector<std::vector<int>> lists;  ///< nodes by rank list, in issue order
};

/// Requires: apply() has made the DAG. Errors: ScheduleInvalid, with the cycle, if the orders that
/// a strategy leaves open would make ranks wait for each other.
[[nodiscard]] IssuedDag issue(TrainingDag dag);

}  // namespace stagecraft::tools
