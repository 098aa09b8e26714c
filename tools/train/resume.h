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

}  // namespace stagecraft::tools
