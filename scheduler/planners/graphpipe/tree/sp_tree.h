/// SpTree represents a graph of operators as nested rows (Series) and branches (Parallel).
///
///          b - c
///     a <         > e      S(a P(S(b c) d) e)
///            d
///
/// In a Series, every last operator of a child comes before every first operator of the next child.
/// sp_tree_of() makes the tree if the graph has this form; otherwise series_parallel()
/// (series_parallel.h) does. The search reads it. A value.
/// GT-1: no Series is a child of a Series, no Parallel of a Parallel; both have at least two
///       children.
/// GT-2: the operators, read from left to right, are in an order of the graph.
/// Source: Valdes, Tarjan, Lawler, "The recognition of series parallel digraphs".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/problem/edges.h"

namespace stagecraft::graphpipe {

struct SpTree {
  enum class Kind { Leaf, Series, Parallel };
  struct Node {
    Kind kind = Kind::Leaf;
    int op = -1;                ///< of a leaf
    std::vector<int> children;  ///< places in `nodes`
  };
  std::vector<Node> nodes;
  int root = -1;

  int add_leaf(int op);
  /// Adds a node. Children of the same kind are merged into it; a single child is returned as it
  /// is. Keeps GT-1.
  int add(Kind kind, std::span<const int> children);
  [[nodiscard]] const Node& at(int node) const { return nodes[static_cast<std::size_t>(node)]; }
  /// Returns the operators from left to right.
  [[nodiscard]] std::vector<int> operators(int node) const;
};

/// Returns "S(0 P(S(1 2) 3) 4)".
[[nodiscard]] std::string to_string(const SpTree& tree);

/// Returns the edges that are not implied by a path of other edges, by producer, then consumer.
/// Cost: edges times operators, 64 at once.
[[nodiscard]] Edges reduced_edges(int operators, const Edges& edges);

/// Returns the tree, or nothing if the graph has another form. Requires: at least one operator.
/// Cost: reduced_edges(), and linear in its result.
[[nodiscard]] std::optional<SpTree> sp_tree_of(int operators, const Edges& edges);

}  // namespace stagecraft::graphpipe
