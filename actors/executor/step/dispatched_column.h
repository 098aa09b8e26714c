/// DispatchedColumn is one column of a schedule after its tasks have run, as a step that the driver
/// dispatches task by task shows it (Dispatch::PerTask, Dispatch::Decided).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/scheduler/model/cell.h"

namespace stagecraft {

/// DispatchedValue describes a tensor that a task has made for other tasks.
struct DispatchedValue {
  bool gradient = false;  ///< of what an earlier task made
  std::vector<std::int64_t> sizes;
  double norm = 0.0;  ///< the root of the sum of squares; of the absolute values for integers
};

struct DispatchedTask {
  Rank rank;
  Task task;       ///< with the microbatch as the rank numbers it
  Task scheduled;  ///< as the schedule has it; ranks that share a row have it each
  std::vector<DispatchedValue> values;
  /// With TrainerOptions::column_tensors: the values themselves. They stay on the rank until they
  /// are read, can be passed to calls of actors, and are freed with their last future. Where stages
  /// hand on tensors in another order of memory (memory_order.h), they have that order. Those of
  /// the driver's own code (sc::on_driver) cannot be read here.
  std::vector<Future<at::Tensor>> tensors = {};
};

struct DispatchedColumn {
  std::size_t number = 0;
  std::size_t columns = 0;  ///< of the whole schedule; 0 if they are decided while it runs
  std::vector<DispatchedTask> tasks;
};

/// Returns "column 3 of 16", then a line for each task: "  rank 1  1F0  [4, 8] norm 2.31".
[[nodiscard]] std::string to_string(const DispatchedColumn& column);

}  // namespace stagecraft
