/// CheckpointFolder keeps the checkpoints of a run in a folder, named step-000000120.ckpt and so
/// on. Threads of its own write them while steps continue.
///
///   sc::CheckpointFolder checkpoints("runs/first", 3);
///   checkpoints.resume(trainer);             // from the newest whole one, or from nothing
///   while (...) {
///     (void)trainer.step(...).get();
///     if (trainer.steps() % 100 == 0) {
///       tell(checkpoints.save(trainer));     // the outcome of the save before
///     }
///   }
///   tell(checkpoints.wait());
///
/// `stagecraft train --save-every` and programs use it. Thread: one at a time.
/// CS-1: a step never waits for the disk. save() waits until the ranks have sent the state, of
///       which at most kHeldBytes are still to be written then, and before that while the save
///       before it is still on its way to the disk.
/// CS-2: an older file is removed once a newer one stands whole (CK-3). A file of a later step is
///       never removed. Other names in the folder are left alone.
/// CS-3: a failed save is reported once, as a value. Training continues, and the files in the
///       folder stay.
/// CS-4: one process at a time writes to a folder. It removes the half-written checkpoints, of any
///       name, of a killed process.
/// CS-5: a checkpoint that was said to be saved outlives the end of the machine, with the folders
///       that were made for it (WF-4).
/// CS-6: so do checkpoints that stand in the folder when it is opened: a killed process may have
///       put them there, and not have said so.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/base/error.h"

namespace stagecraft {

/// SavedCheckpoint is the outcome of a save.
struct SavedCheckpoint {
  std::int64_t step = 0;
  std::string path;
  /// None: the file stands whole, and outlives the end of the machine. Else the message says what
  /// became of it.
  std::optional<Error> failure;
};

/// FoundCheckpoint is the newest whole checkpoint of a folder.
struct FoundCheckpoint {
  std::string path;
  std::int64_t step = 0;
  std::uint64_t seed = 0;
};

struct CheckpointSearch {
  std::optional<FoundCheckpoint> newest;
  std::vector<Error> broken;  ///< newer ones that are broken; each error names its file
};

/// Looks through a folder, newest first, until a checkpoint is whole by its checksum. Finds none in
/// a folder that does not exist. Errors: UsageFile if the folder cannot be read. Cost: reads the
/// file once.
[[nodiscard]] CheckpointSearch find_checkpoint(const std::string& folder);

class CheckpointFolder {
 public:
  /// Makes the folder if there is none. Keeps the `keep` newest files.
  /// Errors: UsageFile if the folder cannot be written to, or if another process writes to it;
  ///         UsageArgument for a `keep` below 1.
  explicit CheckpointFolder(const std::string& folder, int keep = 3);
  /// Waits until the save in progress has ended. Logs a failure that no caller took.
  ~CheckpointFolder();
  CheckpointFolder(const CheckpointFolder&) = delete;
  CheckpointFolder& operator=(const CheckpointFolder&) = delete;

  /// Reads the state after the steps in progress, tensor by tensor, which threads write and put in
  /// its place. Returns the outcome of the previous save, unless a caller has it already.
  /// Errors: those of reading the state, as Trainer::state_dict.
  [[nodiscard]] std::optional<SavedCheckpoint> save(Trainer& trainer);

  /// Returns the outcome of the last save, once it is known. Returns it only once.
  [[nodiscard]] std::optional<SavedCheckpoint> done();
  /// Waits for the outcome of the last save and returns it as done() does.
  [[nodiscard]] std::optional<SavedCheckpoint> wait();

  /// Loads the newest whole checkpoint and logs a warning for each broken one. Returns its path, or
  /// nothing if there is none; the trainer is then unchanged. Errors: those of Trainer::load.
  /// Cost: reads the file twice, once for its checksum.
  std::optional<std::string> resume(Trainer& trainer, SeedFrom seed_from = SeedFrom::Same);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
