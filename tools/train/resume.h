/// resume: from which checkpoint a run goes on, settled before anything is made of its options.
#pragma once

#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

/// Returns the options with --resume as --load of the newest whole checkpoint there, if there is
/// one, and with --seed-from checkpoint as that seed. Tells on standard error which checkpoints
/// are broken, and where there is none.
/// Errors: UsageFile for a folder or a checkpoint that cannot be read; CheckpointFormat for a
///         checkpoint of --load that is not whole, where its seed is wanted.
[[nodiscard]] TrainOptions resumed(const TrainOptions& options, Console& console);

/// Whether the checkpoint that --resume found is at the last step already, and says so then. A job
/// that was queued again ends well by that.
/// Requires: the number of steps is settled (--steps, or make_job).
/// Errors: UsageFile where a file that the run was to write at its end is not there.
[[nodiscard]] bool has_nothing_left(const TrainOptions& options, Console& console);

}  // namespace stagecraft::tools
