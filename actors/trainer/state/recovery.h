/// recover takes all ranks of a trainer back to a state of which their mirrors have copies.
///
/// A Trainer calls it on its caller's thread.
#pragma once

#include <cstdint>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/trainer/state/trainer_state.h"

namespace stagecraft {

/// Returns the number of updates of the state, the newest one of which every rank has a copy
/// (MI-1).
/// Requires: no step is in progress, and workers that replaced others have their setup.
/// Errors: WorkerLost if there is no complete state; those of a rank that does not answer.
std::int64_t recover(Crew& crew, TrainerState& state);

}  // namespace stagecraft
