/// recorded_progress adds to the record of a run folder what the run prints as notes, and how it
/// ends: restarts, saves that failed, signals, a failed comparison.
#pragma once

#include <memory>

#include "stagecraft/tools/run_record/run_folder.h"
#include "stagecraft/tools/train/report/progress.h"

namespace stagecraft::tools {

/// Returns `form`, which also adds to `folder`. `folder` outlives it.
[[nodiscard]] std::unique_ptr<Progress> make_recorded_progress(std::unique_ptr<Progress> form,
                                                               RunFolder& folder);

}  // namespace stagecraft::tools
