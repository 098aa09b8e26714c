/// tree_search: stages of a series-parallel tree of which none takes longer than a limit.
///
///     s (a1 a2 || b1 b2) t    strict: {s} or {s a1 a2 b1 b2}, and {a2}, {b1 b2}, {t} ..
///                             absorbing: {s b1} | {a1} | {b2} | {a2 t} too
///
/// From the last stage to the first, because what a stage has in flight follows from what it feeds.
/// A stage is a range of a row's items, a set of branches, or a range of one branch; absorbing, a
/// range of items may also take the end of one branch before it, and the beginning of one behind
/// it. The dependencies that this adds make in-flight counts larger than they need be, never
/// smaller; settle() takes them from the graph. Pure; any thread.
/// Source: GraphPipe (Jeon et al.), algorithm 1, of which this keeps, instead of an answer for
/// every number of devices, the ways that no other is better than; absorbing is ours.
#pragma once

#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"
#include "stagecraft/scheduler/planners/graphpipe/sp_tree.h"

namespace stagecraft::graphpipe {

struct TreeSearchOptions {
  bool absorbing = true;
  /// The first stages with the least in flight are looked for, not the first that are found; with
  /// limited memory they always are.
  bool least_in_flight = false;
};

/// Returns stages within the problem's devices and memory that take `limit` per sample at most, or
/// nothing where this search finds none.
[[nodiscard]] std::optional<Partition> tree_search(const PartitionProblem& problem,
                                                   const SpTree& tree,
                                                   double limit,
                                                   const TreeSearchOptions& options);

}  // namespace stagecraft::graphpipe
