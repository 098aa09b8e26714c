/// What the ranks of a run read themselves with --read-on-workers: the batches of its work, made
/// anew where a rank runs, from the files of that host.
#pragma once

#include "stagecraft/actors/executor/local_batch.h"
#include "stagecraft/tools/train/job.h"

namespace stagecraft::tools {

/// Has this program know how: the one that drives, and the workers'. Called once.
void register_local_work();

/// The first batch of the run, as ranks read it. They hold it against what is here, so that a host
/// with other files is found before it trains on them.
/// Errors: UsageArgument for a text that can be read once only, and names that are no UTF-8.
[[nodiscard]] LocalBatch first_local_batch(const TrainJob& job);

}  // namespace stagecraft::tools
