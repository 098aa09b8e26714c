/// SpTree: a graph of operators as rows (Series) and branches (Parallel) of one another.
///
///          b - c
///     a <         > e      S(a P(S(b c) d) e)
///            d
///
/// In a Series every last operator of a child comes before every first one of the next. Made by
/// sp_tree_of() where the graph has this form and by series_parallel() (series_parallel.h) where it
/// has not; read by the search. A value.
/// GT-1: no Series stands in a Series, no Parallel in a Parallel; both have two children or more.
/// GT-2: read from left to right, the operators are in an order of the graph.
/// Source: Valdes, Tarjan, Lawler, "The recognition of series parallel digraphs".
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/planners/graphpipe/edges.h"

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
  /// Children of the same kind are taken in; one child alone is returned itself. Keeps GT-1.
  int add(Kind kind, std::span<const int> children);
  [[nodiscard]] const Node& at(int node) const { return nodes[static_cast<std::size_t>(node)]; }
  /// From left to right.
  [[nodiscard]] std::vector<int> operators(int node) const;
};

/// "S(0 P(S(1 2) 3) 4)".
[[nodiscard]] std::string to_string(const SpTree& tree);

/// The edges that no path of others makes superfluous, by producer, then consumer.
/// Cost: edges times operators, by 64 at once.
[[nodiscard]] Edges reduced_edges(int operators, const Edges& edges);

/// Returns the tree, or nothing where the graph has another form.
/// Requires: an operator at least. Cost: reduced_edges(), and linear in what it leaves.
[[nodiscard]] std::optional<SpTree> sp_tree_of(int operators, const Edges& edges);

}  // namespace stagecraft::graphpipe
