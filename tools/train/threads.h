/// The threads of a run: how many it starts, and whether so many can be started.
#pragma once

#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"

namespace stagecraft::tools {

/// Returns how many threads a run starts at most; it compiles on the thread it has.
[[nodiscard]] int threads_to_run(const TrainOptions& options, const ScheduleChoice& choice);

/// Starts so many threads at once, to see whether they can be, and ends them: a library that fails
/// to start one of its own ends the process, or waits for it for ever. The heaps that glibc
/// reserves for threads stay reserved, for those to come.
///
/// Errors: DeviceOutOfMemory, with how many could be started; what else a thread fails with.
void check_threads(int count);

}  // namespace stagecraft::tools
