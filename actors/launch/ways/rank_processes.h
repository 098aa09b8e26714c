/// rank_processes maps ranks to the processes of a fleet. Pure.
///
/// PL-1: a rank has the same place for every crew: the first `local_ranks` ranks are threads of
///       this process; of the others, every `ranks_per_process` share a process, in ascending
///       order.
#pragma once

#include <string>

#include "stagecraft/actors/launch/ways/spawn_options.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Returns whether the rank lives in a worker process.
[[nodiscard]] bool lives_elsewhere(const SpawnOptions& options, Rank rank);

/// Returns the place of the rank's process. Requires: the rank lives elsewhere.
[[nodiscard]] int place_in(const SpawnOptions& options, Rank rank);

/// Returns the first rank of a place.
[[nodiscard]] Rank first_rank_in(const SpawnOptions& options, int place);

/// Returns how many processes the first `ranks` ranks need.
[[nodiscard]] int places_for(const SpawnOptions& options, int ranks);

/// Returns the ranks of a place: "rank 2", "ranks 4-7".
[[nodiscard]] std::string ranks_text(const SpawnOptions& options, int place);

}  // namespace stagecraft
