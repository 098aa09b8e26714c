/// RunCheckpoints: the folder of --save-dir during a run.
///
/// Asked by the run after each step and at its end; single-threaded.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/checkpoints.h"
#include "stagecraft/actors/trainer.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/progress.h"

namespace stagecraft::tools {

class RunCheckpoints {
 public:
  /// Without --save-dir it does nothing. All outlive it. Errors: those of Checkpoints.
  RunCheckpoints(const TrainOptions& options, Console& console, Progress& progress);

  /// Saves where --save-every says so, and tells of saves that are over: one that failed on
  /// standard error. Errors: those of Checkpoints::save.
  void after_step(Trainer& trainer);

  /// Saves the last step, unless it is saved, and waits for it.
  /// Errors: what a save of this run failed with, the first one.
  void close(Trainer& trainer);

 private:
  void tell(const std::optional<SavedCheckpoint>& saved);

  Console& console_;
  Progress& progress_;
  std::optional<std::int64_t> every_;
  std::optional<Checkpoints> checkpoints_;
  std::int64_t last_ = -1;  ///< step of the last one begun
  std::optional<Error> failure_;
};

}  // namespace stagecraft::tools
