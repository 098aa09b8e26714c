/// edges.h holds the reads between operators, and derives facts from them alone: neighbors, and the
/// edges between groups.
///
/// A search calls them independently of the operators' costs. Values. Pure; any thread.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft::graphpipe {

/// Edges lists pairs (producer, consumer). Operators are called 0..n-1, and a producer comes before
/// its consumers.
using Edges = std::vector<std::pair<int, int>>;

/// Converts the number of an operator, a stage or the like to an array position.
[[nodiscard]] constexpr std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

/// Neighbors holds the neighbors by operator.
struct Neighbors {
  std::vector<std::vector<int>> preds, succs;
};
/// Returns the neighbors in the order of the edges.
[[nodiscard]] Neighbors neighbors_of(int operators, const Edges& edges);

/// Returns the edges between groups, each once, by producer, then consumer. `group`: by operator.
[[nodiscard]] Edges edges_between(const Edges& edges, const std::vector<int>& group);

}  // namespace stagecraft::graphpipe
