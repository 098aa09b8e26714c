/// RunCheckpoints is the folder of --save-dir during a run.
///
/// The run calls it after each step and at its end; single-threaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/trainer/checkpoint_folder.h"
#include "stagecraft/actors/trainer/state/checkpoint.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

class RunCheckpoints {
 public:
  /// Does nothing without --save-dir. `resumed_at`: the step of the checkpoint that --resume found,
  /// which is not saved again to its folder. `progress` must outlive it. Errors: those of
  /// CheckpointFolder.
  RunCheckpoints(const KeepingOptions& options,
                 const std::optional<std::int64_t>& resumed_at,
                 Progress& progress);

  /// Saves at the steps of --save-every, but none twice, also if the run repeats it, and reports
  /// saves that have ended, also failed ones. Errors: those of CheckpointFolder::save.
  void after_step(Trainer& trainer);

  /// Saves the last step now, unless it is saved. Errors: likewise.
  void save_now(Trainer& trainer);

  /// Reports a save that has ended, likewise.
  void tell_done();

  /// Waits for the save in progress. Returns the newest whole checkpoint that this run has saved;
  /// null if there is none. Reports newer ones, which are broken, on standard error, and saves
  /// their steps again.
  [[nodiscard]] std::unique_ptr<CheckpointReader> newest();

  /// Saves the last step, unless it or a later one is saved, and waits for it.
  /// Errors: the failure of the last save. An earlier one was reported, and what it missed is in
  ///         the later file.
  void close(Trainer& trainer);

 private:
  void tell(const std::optional<SavedCheckpoint>& saved);

  Progress& progress_;
  std::optional<std::int64_t> every_;
  const std::size_t keep_;
  std::optional<CheckpointFolder> checkpoints_;
  std::int64_t last_ = -1;  ///< the latest step that is saved, or of which a save is under way
  std::map<std::int64_t, std::string> saved_;  ///< files by step: those that the folder keeps
  std::optional<Error> failure_;               ///< of the last save
};

}  // namespace stagecraft::tools
