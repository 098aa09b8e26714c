/// recover takes all ranks of a trainer back to a state of which their mirrors have copies, or the
/// ranks that train copies of the same stages.
///
/// A Trainer calls it on its caller's thread.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/trainer/state/checkpoint_file.h"
#include "stagecraft/actors/trainer/state/trainer_state.h"

namespace stagecraft {

/// StateCopies says where copies of a trainer's states are, in addition to checkpoints.
struct StateCopies {
  bool in_mirrors = false;  ///< neighbors keep those of each rank
  bool of_stages = false;   ///< several ranks train copies of a stage
};

/// Recovery says to which state the ranks went back.
struct Recovery {
  std::int64_t updates = 0;
  bool from_mirrors = false;  ///< else from ranks that train copies of the same stages
  std::optional<CheckpointFacts> facts = {};  ///< if ranks of another trainer have left it (MR-4)
};

/// Takes all ranks back to the newest state of which every rank has a copy in mirrors (MI-1), or
/// one that a trainer before has left, if there are any (MR-4); without mirrors, or if these have
/// none, to the newest that ranks with copies of all stages have (LV-1). Tensors of LV-1 travel
/// over this process, as those of a checkpoint do.
/// Requires: no step is in progress, and workers that replaced others have their setup.
/// Errors: WorkerLost if there is no complete state; those of a rank that does not answer.
Recovery recover(Crew& crew, TrainerState& state, const StateCopies& copies);

}  // namespace stagecraft
