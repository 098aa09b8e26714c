/// series_parallel makes a tree for a graph that is not series-parallel, by adding dependencies.
///
///     a - c          S(P(a b) P(c d)), S(P(S(a c) b) d) or S(a P(c S(b d))):
///       \            the one whose longest path is the shortest
///     b - d
///
/// A part that is not several components, and has no tree of its own, is cut in two; then
/// everything above the cut comes before everything below it. The function tries several cuts and
/// takes the one with the smallest sum of the longest path above and the longest path below; of
/// equal ones, the one that adds the fewest dependencies. No operator appears twice. Added
/// dependencies guide a search; the resulting stages get their edges from the graph. Pure; any
/// thread.
/// Source: the strata and components of González-Escribano et al., "Mapping unstructured
/// applications into nested parallelism"; the choice by costs is ours.
#pragma once

#include <span>

#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"

namespace stagecraft::graphpipe {

/// Returns the result of sp_tree_of() if there is one; otherwise the tree with added dependencies.
/// `times`: by operator.
/// Requires: at least one operator.
/// Cost: with up to 12 operators it tries every cut; with more, about 4 cuts per operator, at most
/// 512.
[[nodiscard]] SpTree series_parallel(int operators,
                                     const Edges& edges,
                                     std::span<const double> times);

/// Returns the length of the longest path.
[[nodiscard]] double critical_path(int operators,
                                   const Edges& edges,
                                   std::span<const double> times);
[[nodiscard]] double critical_path(const SpTree& tree, std::span<const double> times);

}  // namespace stagecraft::graphpipe
