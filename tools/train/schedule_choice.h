/// Which schedule a run follows: a builder's by name, or the user's own from a file.
///
/// SC-1: what comes back has passed validate() on a chain of `stages` stages, once per replica. A
/// Llama is one. A model from a file may have other edges: there, whoever compiled it checks the
/// schedule again, and one from a file that names edges is checked by them first.
#pragma once

#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

struct ScheduleChoice {
  Schedule schedule;
  Layout layout;   ///< of the schedule
  int stages = 0;  ///< of the model; a schedule of two replicas has twice as many
  int microbatches = 0;
};

/// Errors: UsageArgument for an unknown name or parameter, or a flag that contradicts the file;
///         ScheduleParameter (V34) for values the builder cannot take;
///         UsageFile for a file that cannot be opened; ScheduleParse for one that is no schedule;
///         ScheduleInvalid, with the grid and every violation, for one that breaks a rule.
[[nodiscard]] ScheduleChoice choose_schedule(const TrainOptions& options, Console& console);

}  // namespace stagecraft::tools
