/// recover takes all ranks of a trainer back to a state of which their mirrors have copies, or the
/// ranks that train copies of the same stages.
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

/// Returns likewise the number of updates of the newest state that ranks with copies of all stages
/// have (LV-1). The tensors travel over this process, as those of a checkpoint do.
std::int64_t recover_from_copies(Crew& crew, TrainerState& state);

}  // namespace stagecraft
