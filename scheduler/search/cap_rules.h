/// cap_rules lists the releases of a device that must come before its next task can take memory.
///
/// A microbatch passes the stages of a device one after the other, forwards and back. The lanes of
/// these stages are a path. Before the m-th task of a lane starts, each earlier lane of its path
/// has taken m + 1 activations. The part of that sum above the cap must have been released:
///
/// PA-1: at least a count of the path's releases, of any lane;
/// PA-2: of each lane of the path, the releases of microbatches up to a number.
/// Both hold in every order. Heads and the bound of OrderSearch read them. Pure.
#pragma once

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

/// Fills path_before, path_takes and path_releases of the lanes. Requires: feeds, takes and
/// releases.
void add_paths(SearchProblem& problem);

/// Returns by PA-1 how many tasks of `lane.path_releases` have ended; 0 or less: none needs to have
/// ended. Only tasks of microbatches before `m` can have ended.
[[nodiscard]] inline int released_before(const SearchProblem& problem, const Lane& lane, int m) {
  return (m + 1) * lane.path_before - problem.cap;
}

/// Returns by PA-2 the last microbatch whose tasks of `lane.path_releases` have all ended;
/// negative: none.
[[nodiscard]] int last_released_before(const SearchProblem& problem, const Lane& lane, int m);

}  // namespace stagecraft
