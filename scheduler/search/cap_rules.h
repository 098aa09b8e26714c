/// cap_rules: what must have been released on a device before its next task can take memory.
///
/// A microbatch passes the stages of a device one after the other, forwards and back: kin. Before
/// the m-th task of a lane starts, each lane of its kin that takes before it has taken m + 1, and
/// what of all that exceeds the cap has been released:
///
/// KN-1: a count of the kin's releases, whichever they are;
/// KN-2: of each lane of the kin those of microbatches up to a number.
/// Both hold in every order. Read by heads and by the bound of OrderSearch. Pure.
#pragma once

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Fills kin_before and kin_releases of the lanes. Requires: feeds, takes and releases.
void add_kin(SearchProblem& problem);

/// By KN-1, how many tasks of `lane.kin_releases` have ended; 0 or less: none need. All that can
/// have are of microbatches before `m`.
[[nodiscard]] inline int released_before(const SearchProblem& problem, const Lane& lane, int m) {
  return (m + 1) * lane.kin_before - problem.cap;
}

/// By KN-2, the last microbatch that all of `lane.kin_releases` have ended; below 0: none.
[[nodiscard]] int last_released_before(const SearchProblem& problem, const Lane& lane, int m);

}  // namespace stagecraft
