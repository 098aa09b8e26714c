/// shortest_cycle finds the smallest cycle in a directed graph, exactly or with a bounded number of
/// searches.
///
/// A breadth-first search from a vertex finds the shortest cycle through it. Edges have length 0 or
/// 1, so the search follows those of length 0 first. Then it removes that vertex and all vertices
/// that are no longer between two cycles, so a deadlock with one cause ends after few searches.
/// Each search is cut at the best length so far, and by a landmark. The distances of all vertices
/// to the landmark are measured. A vertex at distance k from it is at least k - j away from a
/// vertex at distance j. The searches of vertices just before the landmark turn back where that
/// leaves no shorter cycle, which is nearly everywhere. So even a deadlock with a long cycle for
/// every microbatch takes less than a second at 10^5 cells. Pure; no recursion.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stagecraft::rules {

/// Edge has length 0 or 1.
struct Edge {
  int from = 0;
  int to = 0;
  std::uint8_t length = 1;

  friend auto operator<=>(const Edge&, const Edge&) = default;
};

/// Digraph holds edges by source: the edges of vertex v are targets[begin[v]] up to targets[begin[v
/// + 1]], and their lengths likewise.
struct Digraph {
  std::vector<int> begin{0};
  std::vector<int> targets;
  std::vector<std::uint8_t> lengths;

  [[nodiscard]] int size() const { return static_cast<int>(begin.size()) - 1; }
};

/// Returns the graph of `size` vertices with these edges; of several edges between two vertices the
/// shortest counts.
[[nodiscard]] Digraph digraph(int size, const std::vector<Edge>& edges);

/// Returns the vertices of a cycle in order, or nothing if there is none. Searches `roots` first.
/// It ends sooner if the roots lie on more of the cycles.
/// Requires: no cycle has length 0.
/// Ensures: shortest, unless more than `max_landmarks` are needed.
[[nodiscard]] std::vector<int> shortest_cycle(const Digraph& graph,
                                              const std::vector<int>& roots,
                                              std::size_t max_landmarks);

}  // namespace stagecraft::rules
