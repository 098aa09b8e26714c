/// run_files writes the files of a run's end: checkpoint, weights, module.
#pragma once

#include <string>

#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/tools/train/job/job.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

/// Returns whether the run saves what it has trained.
[[nodiscard]] bool saves(const KeepingOptions& options);

/// Returns the file for which a run continues without a reader of its output; null if there is
/// none.
[[nodiscard]] const std::string* kept_by(const TrainOptions& options);

/// Write the files of --save, --save-weights (averages with --save-averages) and --save-module, and
/// report them; nothing without the option. Errors: those of Trainer, and of write_weights.
void save_checkpoint(const TrainJob& job, Trainer& trainer, Progress& progress);
void save_weights(const TrainJob& job, Trainer& trainer, Progress& progress);
void save_module(const TrainJob& job, Trainer& trainer, Progress& progress);

}  // namespace stagecraft::tools
