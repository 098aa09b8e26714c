/// run_identity says which options make a run another one, so that no folder holds two.
#pragma once

#include "stagecraft/tools/run_record/run_record.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns the model with its sizes, and the options that make the strategy. Schedules, strategies
/// and cuts in files are known by their contents. Checkpoints tell optimizers, seeds and the
/// weights of model files apart.
/// Errors: UsageFile for such a file that cannot be read.
[[nodiscard]] RunIdentity run_identity(const TrainOptions& options);

}  // namespace stagecraft::tools
