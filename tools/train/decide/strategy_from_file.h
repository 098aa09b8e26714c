/// strategy_from_file makes the strategy of a run from a file of the user.
#pragma once

#include <optional>

#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/decide/step_size.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Returns the places and sizes of the file of --strategy. The order of its ranks follows once the
/// model's chunks are known. `graph`: of --graph.
/// Errors: UsageFile for a file that cannot be read; ScheduleParse for one that is no strategy;
///         ScheduleInvalid with its faults; UsageArgument for options that contradict it.
[[nodiscard]] Choice choose_from_strategy(const TrainOptions& options,
                                          const StepSize& size,
                                          const std::optional<StageGraph>& graph,
                                          Console& console);

}  // namespace stagecraft::tools
