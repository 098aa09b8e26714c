/// trainer_checkpoint takes a checkpoint of a trainer's state, and restores one.
///
/// A Trainer uses it on its caller's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
  std::vector<std::string> processors;  ///< as in CheckpointFacts
  const LoopStates* loops = nullptr;    ///< for taking
};

/// Returns a checkpoint of the state. Requires: `run` has a seed and loops. Errors: those of
/// TrainerState::read.
[[nodiscard]] Checkpoint take_checkpoint(TrainerState& state, const RunFacts& run);

/// Reads the same content tensor by tensor (TrainerState::read_each), and hands it to a save that
/// writes it beside its place. `path_of`: as in Trainer::begin_save.
/// Requires: as take_checkpoint. Errors: likewise; those of CheckpointSave.
[[nodiscard]] std::unique_ptr<CheckpointSave> begin_save(
    const std::function<std::string(std::int64_t)>& path_of,
    TrainerState& state,
    const RunFacts& run);

/// Replaces the trainer's state by that of a checkpoint with this header, of which `source` has the
/// tensors. `forgotten`: as in TrainerState::replace. Logs if the saved run computed with other
/// code.
/// Errors: CheckpointMismatch, with nothing changed; those of TrainerState::replace.
void restore(const CheckpointHeader& header,
             const StateSource& source,
             TrainerState& state,
             const RunFacts& run,
             const std::function<void()>& forgotten);

}  // namespace stagecraft
