/// dry_run is `--dry-run`: it reports what a run would do and hold, without running it.
#pragma once

#include <string>

#include "stagecraft/tools/train/job/job.h"

namespace stagecraft::tools {

/// Returns stages, the schedule's grid, the size of the plan, and the bytes of every rank and of
/// all together: for people, or as one JSON object.
[[nodiscard]] std::string dry_run(const TrainJob& job);

}  // namespace stagecraft::tools
