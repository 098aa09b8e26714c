/// What a file format has words for, and the error for a schedule that it cannot hold.
///
/// Every writer asks before it writes, so that nothing is lost on the way into a file. Pure; any
/// thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft::formats {

enum class GraphWords : std::uint8_t {
  Any,    ///< the file says which stage feeds which
  Model,  ///< the file says nothing; its readers take the edges from the model
  Chain   ///< the file says nothing; its readers take the stages for one chain
};

enum class GroupWords : std::uint8_t { Any, ForwardWithBackward, None };

struct FormatWords {
  std::string_view name;  ///< "PyTorch's CSV", for messages
  /// Other than Any: no replicas or frozen stages either.
  GraphWords graph = GraphWords::Any;
  GroupWords groups = GroupWords::Any;
  bool updates = true;
  bool sizes = true;  ///< stages may take microbatches of different sizes
};

/// Errors: ScheduleParameter naming the first cell, with its row and column, that the format has no
/// word for: also a task without a kind or with a number below 0, which no format has.
void require_expressible(const Schedule& schedule,
                         const StageGraph& graph,
                         const FormatWords& format);

}  // namespace stagecraft::formats
