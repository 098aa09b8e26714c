/// shortest_cycle: the smallest circle in a directed graph, exactly or from a bounded number of
/// tries.
///
/// A breadth-first search from a vertex finds the shortest cycle through it. That vertex is then
/// removed, and with it everything no longer between two cycles, so a deadlock with one cause ends
/// after few searches; each search is cut at the best length so far.
/// A vertex searched in full also serves as a landmark for those just before it: who is k edges
/// away from the landmark is at least k - j edges away from a vertex that is j edges away. Their
/// searches turn back wherever that cannot give a shorter cycle, which is nearly everywhere, so a
/// deadlock with as many long cycles as microbatches is searched in a second too. Pure; no
/// recursion.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace stagecraft::rules {

/// Edges by source: those of vertex v are targets[begin[v]] up to targets[begin[v + 1]].
struct Digraph {
  std::vector<int> begin{0};
  std::vector<int> targets;

  [[nodiscard]] int size() const { return static_cast<int>(begin.size()) - 1; }
};

/// Returns the graph of `size` vertices with these edges (from, to); an edge twice counts once.
[[nodiscard]] Digraph digraph(int size, const std::vector<std::pair<int, int>>& edges);

/// Returns the vertices of a cycle in order, or nothing when there is none. `roots` are searched
/// first: the closer they come to lying on every cycle, the sooner it ends. Ensures: shortest,
/// unless more than `max_searches` full searches would have been needed.
[[nodiscard]] std::vector<int> shortest_cycle(const Digraph& graph,
                                              const std::vector<int>& roots,
                                              std::size_t max_searches);

}  // namespace stagecraft::rules
