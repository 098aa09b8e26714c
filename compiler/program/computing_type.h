/// computing_type tells in which type the operators of a program compute.
#pragma once

#include <string_view>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns "fp32", "bf16" or "fp16": the type of autocast, or that of the parameters without
/// autocast. Returns "" for other types, and for several.
[[nodiscard]] std::string_view computing_type(const Graph& graph);

}  // namespace stagecraft
