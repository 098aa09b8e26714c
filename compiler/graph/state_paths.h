/// state_paths handles parameters and buffers by the paths that a module gives them: "layers.3" for
/// all of "layers.3.weight", "layers.3.norm.bias" ... Cuts, recompute and messages use it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns the name of the parameter or buffer that a value is; null for any other value.
[[nodiscard]] const std::string* name_of_state(const Graph& graph, ValueId id);

/// Returns whether the name equals the path or is below it.
[[nodiscard]] bool is_below(std::string_view name, std::string_view path);

/// Returns every path above a name, the longest last: "layers", "layers.3".
[[nodiscard]] std::vector<std::string> paths_above(std::string_view name);

}  // namespace stagecraft
