/// trainer_checkpoint takes a checkpoint of a trainer's state, and restores one.
///
/// A Trainer uses it on its caller's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/state/trainer_state.h"

namespace stagecraft {

/// RunFacts holds the facts of a checkpoint in addition to the state.
struct RunFacts {
  std::optional<std::uint64_t> seed;    ///< none: any, for restoring
  std::string optimizer;                ///< its name in the registry
  std::vector<std::string> processors;  ///< as in Checkpoint
};

/// Returns a checkpoint of the state. Requires: `run` has a seed. Errors: those of
/// TrainerState::read.
[[nodiscard]] Checkpoint take_checkpoint(TrainerState& state, const RunFacts& run);

/// Replaces the trainer's state by the checkpoint's. Logs if the saved run computed with other
/// code.
/// Errors: CheckpointMismatch, with nothing changed; those of TrainerState::replace.
void restore(const Checkpoint& checkpoint, TrainerState& state, const RunFacts& run);

}  // namespace stagecraft
