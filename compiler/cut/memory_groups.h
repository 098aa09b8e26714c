/// memory_groups finds the operators that must be in one stage because they use memory that one of
/// them writes in place. Stages share no memory.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

struct MemoryGroup {
  int alias_set = 0;
  /// Ascending. Operators after the last write are not part of the group: they read the finished
  /// value, which may cross a border.
  std::vector<std::size_t> operators;
  /// True if the memory belongs to an input, label, parameter, buffer or constant, which no stage
  /// makes. Operators after the last write then belong to the group too.
  bool foreign = false;
};

/// Returns one group for each memory that is written.
[[nodiscard]] std::vector<MemoryGroup> memory_groups(const Graph& graph);

}  // namespace stagecraft
