/// resume: finds the checkpoint from which a run continues, before anything else uses its options.
#pragma once

#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns the options with --resume replaced by --load of the newest whole checkpoint there, if
/// there is one, and --seed-from checkpoint replaced by that seed. Reports on standard error which
/// checkpoints are broken, and where there is none.
/// Errors: UsageFile for a folder or a checkpoint that cannot be read; CheckpointFormat for a
///         checkpoint of --load that is not whole, if its seed is needed.
[[nodiscard]] TrainOptions resumed(const TrainOptions& options, Console& console);

/// Returns whether the checkpoint that --resume found is at the last step already, and reports it
/// then. A job that was queued again ends well in this way.
/// Requires: the number of steps is settled (--steps, or make_job).
/// Errors: UsageFile if a file that the run writes at its end is not there.
[[nodiscard]] bool has_nothing_left(const TrainOptions& options, Console& console);

}  // namespace stagecraft::tools
