/// Edges: which operator reads of which, and what follows from that alone: neighbours, and the
/// edges between groups.
///
/// What a search asks of a graph, whatever its operators cost. Values. Pure; any thread.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft::graphpipe {

/// (producer, consumer). Operators are called 0..n-1, and a producer comes before its consumers.
using Edges = std::vector<std::pair<int, int>>;

/// The place of an operator, a stage or the like in a list of all.
[[nodiscard]] constexpr std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// By operator.
struct Neighbours {
  std::vector<std::vector<int>> preds, succs;
};
/// In the order of the edges.
[[nodiscard]] Neighbours neighbours_of(int operators, const Edges& edges);

/// The edges between groups, each once, by producer, then consumer. `group`: by operator.
[[nodiscard]] Edges edges_between(const Edges& edges, const std::vector<int>& group);

}  // namespace stagecraft::graphpipe
