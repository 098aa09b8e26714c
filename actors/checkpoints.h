/// Checkpoints: the checkpoints of a run in a folder, step-000000120.ckpt and so on, written by a
/// thread of their own while steps go on.
///
///   sc::Checkpoints checkpoints("runs/first", 3);
///   checkpoints.resume(trainer);             // from the newest that is whole, or from nothing
///   while (...) {
///     (void)trainer.step(...).get();
///     if (trainer.steps() % 100 == 0) {
///       tell(checkpoints.save(trainer));     // of the one before
///     }
///   }
///   tell(checkpoints.wait());
///
/// Used by `stagecraft train --save-every` and by programs. Thread: one at a time.
/// CS-1: a step never waits for the disk; save() does, where the one before is still being written:
///       one state at most is held to be written.
/// CS-2: an older file is removed once a newer one stands whole (CK-3), and never one of a later
///       step. Other names in the folder are left alone.
/// CS-3: what could not be written is told once, as a value: training goes on, and what was there
///       stays.
/// CS-4: one process at a time writes to a folder, and removes what a killed one left half-written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/checkpoint.h"
#include "stagecraft/actors/trainer.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

/// What became of a save.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;
  std::optional<Error> failure;  ///< none: it stands whole
};

/// The newest checkpoint of a folder that is whole.
struct FoundCheckpoint {
  std::string path;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> newest;
  std::vector<Error> broken;  ///< newer ones, each by its name
};

/// Looks through a folder, newest first, until one is whole by its checksum. A folder that is not
/// there has none. Errors: UsageFile for a folder that cannot be read. Cost: one reading of it.
[[nodiscard]] CheckpointSearch find_checkpoint(const std::string& folder);

class Checkpoints {
 public:
  /// Makes the folder where there is none. `keep`: so many of the newest stay.
  /// Errors: UsageFile for a folder that cannot be written to, or in which another process writes;
  ///         UsageArgument for a `keep` below 1.
  explicit Checkpoints(const std::string& folder, int keep = 3);
  /// Waits until what is being written stands or has failed; logs a failure that nobody took.
  ~Checkpoints();
  Checkpoints(const Checkpoints&) = delete;
  Checkpoints& operator=(const Checkpoints&) = delete;

  /// Copies the state after the steps under way, and begins to write it. Returns what became of the
  /// one before, where nobody has asked yet. Errors: those of Trainer::checkpoint.
  [[nodiscard]] std::optional<SavedCheckpoint> save(Trainer& trainer);
  [[nodiscard]] std::optional<SavedCheckpoint> save(Checkpoint checkpoint);

  /// What became of the last one, once that is known; nothing where somebody asked before.
  [[nodiscard]] std::optional<SavedCheckpoint> done();
  /// The same, waiting for it.
  [[nodiscard]] std::optional<SavedCheckpoint> wait();

  /// Loads the newest whole one; a warning is logged for each broken one. Returns where it is;
  /// nothing where there is none, and the trainer is as it was. Errors: those of Trainer::load.
  std::optional<std::string> resume(Trainer& trainer, SeedFrom seed_from = SeedFrom::Same);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
