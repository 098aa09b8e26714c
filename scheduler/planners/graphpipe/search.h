/// partition_graph: the stages of a graph whose slowest takes as little time per sample as a search
/// finds, on so many devices and in so much memory.
///
/// A search answers whether a limit can be kept; this one looks for the smallest limit by halving
/// what lies between one that fails and the best answer so far. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/scheduler/planners/graphpipe/partition.h"

namespace stagecraft::graphpipe {

enum class SearchMode : std::uint8_t {
  Strict,     ///< of a tree: a stage is a range of a row, branches, or part of one branch
  Absorbing,  ///< of a tree: a range may take part of a branch before and of one behind it too
  Exact,      ///< of all sets of operators: see downset_search.h
  Auto,       ///< Exact for graphs that it takes and one kind of turns, else Absorbing
};

struct SearchOptions {
  SearchMode mode = SearchMode::Auto;
  /// By how much of it the time of the answer may be above the smallest that the mode finds.
  double precision = 1e-3;
};

/// Returns nothing where the search finds no stages that fit the memory. Graphs of another form
/// than a tree get one (series_parallel.h), where the mode needs it.
/// Errors: UsageArgument for Exact where downset_count.h does not take the problem.
[[nodiscard]] std::optional<Partition> partition_graph(const PartitionProblem& problem,
                                                       const SearchOptions& options = {});

}  // namespace stagecraft::graphpipe
