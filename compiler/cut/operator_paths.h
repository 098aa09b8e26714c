/// operator_paths: how the operators of a graph are called by the module's own names. C++ modules
/// have no hooks, and files no modules; but whoever computes with a parameter stands where that
/// parameter does.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph.h"

namespace stagecraft {

/// Returns for every operator the path of the module whose parameters or buffers it uses ("" for
/// one that uses none): of several the part that they have in common, and a tensor's own name where
/// the module at the root has it.
[[nodiscard]] std::vector<std::string> own_paths(const Graph& graph);

/// The path of the last operator so far that uses parameters or buffers; "" where none does.
[[nodiscard]] std::string last_path(const Graph& graph);

/// "aten::softmax.int (op:45, near layers.3.attention)": the number among the graph's operators,
/// and the path of the nearest one before it along its operands that uses parameters.
[[nodiscard]] std::string described_operator(const Graph& graph, std::size_t node);

/// "between layers.3 and layers.4", "inside layers.3.attention, before aten::softmax.int (op:45)":
/// where the operators before this one end, told as shortly as it can be told apart.
/// Requires: 0 < node < number of operators; `own` is own_paths of the graph.
[[nodiscard]] std::string place_before(const Graph& graph,
                                       const std::vector<std::string>& own,
                                       std::size_t node);

}  // namespace stagecraft
