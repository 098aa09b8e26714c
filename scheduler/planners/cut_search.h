/// cut_search: the best cut for a schedule that can be found: all cuts where there are few, else a
/// beam from several starts and moves of two places at once behind it.
///
/// Pure: pseudo-random numbers start alike. Any thread.
/// CX-1: no result is worse than that of the beam alone (cut_beam.h) from any of its starts.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/scheduler/planners/cut_beam.h"

namespace stagecraft {

/// Cuts with which a search may start: equal numbers of operators, equal times, and equal bytes
/// held and kept.
[[nodiscard]] std::vector<std::vector<int>> starting_cuts(const OperatorRow& row, int stages);

struct CutSearchOptions {
  BeamOptions beam;
  double all_up_to = 20'000;       ///< so many cuts are all looked at
  std::size_t restarts = 12;       ///< from cuts a little off the best one
  std::vector<int> further_start;  ///< beside the usual ones; empty: none
};

/// Returns the best cut; it fits the memory where any that was looked at does.
/// Cost: a beam's for every start, then about 50 step times for every two places and every cut that
/// is better than the one before.
[[nodiscard]] ScoredCut find_cut(CutCost& cost, const CutSearchOptions& options = {});

}  // namespace stagecraft
