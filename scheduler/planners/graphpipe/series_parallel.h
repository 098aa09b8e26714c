/// series_parallel: a tree for a graph that is not series-parallel, by dependencies that are added.
///
///     a - c          S(P(a b) P(c d)), S(P(S(a c) b) d) or S(a P(c S(b d))):
///       \            the one whose longest path is the shortest
///     b - d
///
/// What is not one of several components, and has no tree of its own, is cut in two: all above
/// comes before all below then. Of the cuts that are tried the one is taken whose longest path
/// above and longest path below are together the shortest; of these the one that adds the fewest
/// dependencies. No operator appears twice. Added dependencies guide a search; stages made by it
/// get their edges from the graph. Pure; any thread.
/// Source: the strata and components of González-Escribano et al., "Mapping unstructured
/// applications into nested parallelism"; the choice by costs is ours.
#pragma once

#include <span>

#include "stagecraft/scheduler/planners/graphpipe/sp_tree.h"

namespace stagecraft::graphpipe {

/// Returns sp_tree_of() where there is one. `times`: by operator.
/// Requires: an operator at least.
/// Cost: every cut of up to 12 operators is tried, of more about 4 for each, 512 at most.
[[nodiscard]] SpTree series_parallel(int operators,
                                     const Edges& edges,
                                     std::span<const double> times);

/// The longest path.
[[nodiscard]] double critical_path(int operators,
                                   const Edges& edges,
                                   std::span<const double> times);
[[nodiscard]] double critical_path(const SpTree& tree, std::span<const double> times);

}  // namespace stagecraft::graphpipe
