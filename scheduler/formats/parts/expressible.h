/// expressible describes the schedules that a file format can hold, and reports a schedule that it
/// cannot hold.
///
/// write_schedule() calls it before it writes, so that a file loses nothing. Pure; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft::formats {

enum class GraphWords : std::uint8_t {
  Any,    ///< the file names the edges between stages
  Model,  ///< the file names no edges; readers take them from the model
  Chain   ///< the file names no edges; readers assume one chain
};

enum class GroupWords : std::uint8_t {
  Any,
  Independent,          ///< no two tasks of one stage and microbatch
  ForwardWithBackward,  ///< one F with one B
  None
};

struct FormatWords {
  std::string_view name;  ///< "PyTorch's CSV", for messages
  bool bubbles = true;    ///< false: the file is a list, and the bubbles of an array are left out
  /// Any value but Any also rules out replicas, frozen stages, and microbatches of different sizes.
  GraphWords graph = GraphWords::Any;
  GroupWords groups = GroupWords::Any;
  bool updates = true;
  bool places = false;  ///< whether a row may stand for several ranks
};

/// Returns whether two tasks are of one microbatch in one stage, so that one needs the other.
[[nodiscard]] bool need_each_other(std::span<const Task> tasks);

/// Checks the schedule.
/// Errors: ScheduleParameter with the first cell, row and column that the format cannot express. A
/// task without a kind or with a number below 0 is such a cell in every format.
void require_expressible(const Schedule& schedule,
                         const StageGraph& graph,
                         const FormatWords& format);

}  // namespace stagecraft::formats
