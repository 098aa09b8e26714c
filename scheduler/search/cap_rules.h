/// cap_rules lists what a device must have released before its next task can take memory.
///
/// A microbatch passes the stages of a device one after the other, forwards and back; the lanes of
/// these stages are kin. Before the m-th task of a lane starts, each earlier lane of its kin has
/// taken m + 1. The part of that sum above the cap must have been released:
///
/// KN-1: at least a count of the kin's releases, of any lane;
/// KN-2: of each lane of the kin, the releases of microbatches up to a number.
/// Both hold in every order. Read by heads and by the bound of OrderSearch. Pure.
#pragma once

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Fills kin_before and kin_releases of the lanes. Requires: feeds, takes and releases.
void add_kin(SearchProblem& problem);

/// Returns by KN-1 how many tasks of `lane.kin_releases` have ended; 0 or less: none must have. All
/// that can have ended are of microbatches before `m`.
[[nodiscard]] inline int released_before(const SearchProblem& problem, const Lane& lane, int m) {
  return (m + 1) * lane.kin_before - problem.cap;
}

/// Returns by KN-2 the last microbatch whose tasks of `lane.kin_releases` have all ended; negative:
/// none.
[[nodiscard]] int last_released_before(const SearchProblem& problem, const Lane& lane, int m);

}  // namespace stagecraft
