/// local_work makes the batches that ranks read themselves with --read-on-workers: they are made
/// where a rank runs, from the files of that host.
#pragma once

#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

/// Registers the source in this program, the driver's and the workers', once.
void register_local_work();

/// Returns the first batch of the run, as ranks read it. They compare it with their own, so that a
/// host with other files is found before it trains on them.
/// Errors: UsageArgument for a text that can be read only once, and for names that are no UTF-8.
[[nodiscard]] LocalBatch first_local_batch(const TrainJob& job);

}  // namespace stagecraft::tools
