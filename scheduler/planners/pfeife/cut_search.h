/// cut_search finds the best cut for a schedule. It tries all cuts if there are few. Otherwise it
/// runs a beam from several starts and then moves two places at once.
///
/// Pure: its pseudo-random numbers always start alike. Any thread.
/// CX-1: no result is worse than the beam alone (cut_beam.h) from any of its starts.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/scheduler/planners/pfeife/cut_beam.h"

namespace stagecraft {

/// Returns cuts that start a search: equal numbers of operators, equal times, and equal bytes held
/// and kept.
[[nodiscard]] std::vector<std::vector<int>> starting_cuts(const OperatorRow& row, int stages);

struct CutSearchOptions {
  BeamOptions beam;
  double all_up_to = 20'000;             ///< tries all cuts if there are at most this many
  std::size_t restarts = 6;              ///< from cuts near the best one
  std::size_t most_moves = 150'000;      ///< tried after the beam
  std::vector<std::vector<int>> starts;  ///< of the beam; empty: starting_cuts()
};

/// Returns the best of all cuts if there are few, otherwise the best of the beams. Cost: that of
/// one beam for every start. `options.beam.is_over` also ends these functions, with the best cut so
/// far.
[[nodiscard]] ScoredCut first_cut(CutCost& cost, const CutSearchOptions& options = {});

/// Returns the best cut that moves of several places reach from `first`, or `first` itself. Finds
/// nothing better if all cuts were tried already. Cost: at most `most_moves` step times.
[[nodiscard]] ScoredCut refine_cut(CutCost& cost,
                                   ScoredCut first,
                                   const CutSearchOptions& options = {});

/// Calls both functions. The returned cut fits the memory if any cut that was tried does.
[[nodiscard]] ScoredCut find_cut(CutCost& cost, const CutSearchOptions& options = {});

}  // namespace stagecraft
