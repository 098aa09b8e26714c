/// tree_search finds stages of a series-parallel tree that all keep a limit of time.
///
///     s (a1 a2 || b1 b2) t    strict: {s} or {s a1 a2 b1 b2}, and {a2}, {b1 b2}, {t} ..
///                             absorbing: also {s b1} | {a1} | {b2} | {a2 t}
///
/// It works from the last stage to the first, because the samples in flight of a stage follow from
/// the stages that it feeds. A stage is a range of a row's items, a set of branches, or a range of
/// one branch. With `absorbing`, a range of items may also include the end of one branch before it
/// and the beginning of one branch after it. The dependencies that this adds can make in-flight
/// counts larger than necessary, never smaller; settle() recomputes them from the graph. Pure; any
/// thread.
/// Source: GraphPipe (Jeon et al.), algorithm 1. The paper keeps one answer per number of devices;
/// this search keeps the ways that no other way dominates. Absorbing is ours.
#pragma once

#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"
#include "stagecraft/scheduler/planners/graphpipe/tree/sp_tree.h"

namespace stagecraft::graphpipe {

struct TreeSearchOptions {
  bool absorbing = true;
  /// Searches for the first stages with the least in flight, instead of the first ones found. With
  /// limited memory it always does.
  bool least_in_flight = false;
};

/// Returns stages within the problem's devices and memory that take at most `limit` per sample, or
/// nothing if this search finds none.
[[nodiscard]] std::optional<Partition> tree_search(const PartitionProblem& problem,
                                                   const SpTree& tree,
                                                   double limit,
                                                   const TreeSearchOptions& options);

}  // namespace stagecraft::graphpipe
