/// partition_graph cuts a graph into stages whose slowest stage takes as little time per sample as
/// a search can find, on the given devices and memory.
///
/// A search answers whether a limit can be kept. This function looks for the smallest limit: it
/// halves the interval between a limit that fails and the best answer so far. Pure; any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/problem/partition.h"

namespace stagecraft::graphpipe {

enum class SearchMode : std::uint8_t {
  Strict,     ///< on a tree: a stage is a range of a row, branches, or part of one branch
  Absorbing,  ///< on a tree: a range may include part of a branch before and after it
  Exact,      ///< over all sets of operators; see downset_search.h
  Auto,       ///< Exact if it takes the graph and there is one kind of turns; else Absorbing
};

struct SearchOptions {
  SearchMode mode = SearchMode::Auto;
  /// The fraction by which the time of the answer may exceed the smallest that the mode finds.
  double precision = 1e-3;
  /// The search calls it before every limit that it tries; true ends the search with the best
  /// answer so far. Empty: never.
  std::function<bool()> is_over;
};

/// Returns nothing if the search finds no stages that fit the memory. If the mode needs a tree and
/// the graph has none, series_parallel() makes one.
/// Errors: UsageArgument for Exact if takes_downsets() refuses the problem.
[[nodiscard]] std::optional<Partition> partition_graph(const PartitionProblem& problem,
                                                       const SearchOptions& options = {});

}  // namespace stagecraft::graphpipe
