/// choose_living_copies finds the state to which the ranks of a trainer can go back after a failure
/// because other ranks train copies of the same stages: the living tensors of these ranks are the
/// copy. No mirror is needed.
///
/// Ranks leave a failed step with the weights before it or, past its vote, with those after it.
///
///     rank 0  stage 0  after 8 updates          rank 1  stage 1  after 7 updates
///     rank 2  stage 0  after 7 updates          rank 3  stage 1  none: it was replaced
///
/// Here all ranks go back to the state after 7 updates: rank 0 takes that of rank 2, and rank 3
/// that of rank 1.
/// LV-1: every tensor of the chosen state comes from a rank whose weights are exactly those after
///       so many updates, so all ranks get the bits of an undisturbed run.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// LivingCopies is a state, and the ranks that have all of it.
struct LivingCopies {
  std::int64_t updates = 0;
  std::vector<Rank> sources;  ///< ascending; together they have every tensor of every rank
};

/// Returns the newest state of which the ranks together have all tensors. `listings`: of all ranks.
/// Errors: WorkerLost if there is none, with a tensor that is lost and what the ranks have.
[[nodiscard]] LivingCopies choose_living_copies(const std::vector<StateListing>& listings);

}  // namespace stagecraft
