/// memory_groups: the operators that must be in one stage, because they use memory that one of them
/// writes in place. Stages share no memory.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

struct MemoryGroup {
  int alias_set = 0;
  /// Ascending. Operators behind the last write are no part of it: they read the finished value,
  /// which may cross.
  std::vector<std::size_t> operators;
  /// The memory is that of an input, label, parameter, buffer or constant, which no stage makes:
  /// operators behind the last write belong to the group too.
  bool foreign = false;
};

/// One group for each memory that is written.
[[nodiscard]] std::vector<MemoryGroup> memory_groups(const Graph& graph);

}  // namespace stagecraft
