/// operator_paths names the operators of a graph by the module's own names. C++ modules have no
/// hooks, and files have no modules, but an operator that uses a parameter belongs to the module of
/// that parameter.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"

namespace stagecraft {

/// Returns for every operator the path of the module whose parameters or buffers it uses ("" if it
/// uses none). For several modules it is the common part of their paths. For tensors of the root
/// module it is the tensor's own name.
[[nodiscard]] std::vector<std::string> own_paths(const Graph& graph);

/// Returns the path of the last operator so far that uses parameters or buffers; "" if none does.
[[nodiscard]] std::string last_path(const Graph& graph);

/// Returns "aten::softmax.int (op:45, near layers.3.attention)": the operator's number in the
/// graph, and the path of the nearest operator before it along its operands that uses parameters.
[[nodiscard]] std::string described_operator(const Graph& graph, std::size_t node);

/// Returns the place where the operators before this one end: "between layers.3 and layers.4", or
/// "inside layers.3.attention, before aten::softmax.int (op:45)". The text is as short as it can be
/// and still distinguishes the place.
/// Requires: 0 < node < number of operators; `own` is own_paths of the graph.
[[nodiscard]] std::string place_before(const Graph& graph,
                                       const std::vector<std::string>& own,
                                       std::size_t node);

}  // namespace stagecraft
