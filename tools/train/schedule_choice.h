/// Which schedule a run follows: a builder's by name, or the user's own from a file.
///
/// SC-1: what comes back has passed validate() on the model's graph of `stages` stages, once per
/// replica. The graph of a model from a file is known once it is compiled: there it is that of
/// --graph or of the schedule file, else a chain, and whoever compiled the model checks again.
#pragma once

#include <functional>
#include <string>

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

/// What is known of a model's stages before it is built.
struct ModelStages {
  std::string model;  ///< its name, for messages
  /// Who feeds whom when it is cut into so many stages; empty where only compiling tells.
  /// Errors: UsageArgument for a number that it cannot be cut into.
  std::function<StageGraph(int stages)> graph;
  std::string with_graphs;  ///< which models have stages that are no chain, for messages
};

/// Errors: UsageArgument for an unknown name or parameter, or a flag that contradicts the file or
///         the model;
///         ScheduleParameter (V34) for values the builder cannot take;
///         UsageFile for a file that cannot be opened; ScheduleParse for one that is no schedule;
///         ScheduleInvalid, with the grid and every violation, for one that breaks a rule.
[[nodiscard]] ScheduleChoice choose_schedule(const TrainOptions& options,
                                             const ModelStages& model,
                                             Console& console);

}  // namespace stagecraft::tools
