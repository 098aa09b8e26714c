/// cut_search: the best cut for a schedule that can be found: all cuts where there are few, else a
/// beam from several starts and moves of two places at once behind it.
///
/// Pure: pseudo-random numbers start alike. Any thread.
/// CX-1: no result is worse than that of the beam alone (cut_beam.h) from any of its starts.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/scheduler/planners/pfeife/cut_beam.h"

namespace stagecraft {

/// Cuts with which a search may start: equal numbers of operators, equal times, and equal bytes
/// held and kept.
[[nodiscard]] std::vector<std::vector<int>> starting_cuts(const OperatorRow& row, int stages);

struct CutSearchOptions {
  BeamOptions beam;
  double all_up_to = 20'000;             ///< so many cuts are all looked at
  std::size_t restarts = 6;              ///< from cuts a little off the best one
  std::size_t most_moves = 150'000;      ///< that are looked at behind the beam
  std::vector<std::vector<int>> starts;  ///< of the beam; empty: starting_cuts()
};

/// The best of all cuts where there are few, else of the beams.
/// Cost: a beam's for every start.
[[nodiscard]] ScoredCut first_cut(CutCost& cost, const CutSearchOptions& options = {});

/// The best cut that moves of several places find from `first`, or `first`. Nothing is better where
/// all cuts were looked at.
/// Cost: `most_moves` step times at most.
[[nodiscard]] ScoredCut refine_cut(CutCost& cost,
                                   ScoredCut first,
                                   const CutSearchOptions& options = {});

/// Both. The cut returned fits the memory where any that was looked at does.
[[nodiscard]] ScoredCut find_cut(CutCost& cost, const CutSearchOptions& options = {});

}  // namespace stagecraft
