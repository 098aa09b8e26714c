/// Chooses the schedule of a run: a builder's by name, or the user's own from a file.
///
/// SC-1: the result has passed validate(), once per replica, on the graph of `stages` stages that
///       is known by then: a chain, if the model is one; for other models, before they are
///       compiled, that of --graph or of the schedule file, else a chain. The code that compiles
///       the model then chooses again over the model's own graph (over_graph), and check() judges
///       the result.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

/// Used if neither the options nor a schedule file give the number.
inline constexpr int kDefaultMicrobatches = 8;

struct ScheduleChoice {
  Schedule schedule;
  Layout layout;   ///< of the schedule
  int stages = 0;  ///< of the model; a schedule of two replicas has twice as many
  int microbatches = 0;
  std::optional<StageGraph> given;  ///< of --graph
  std::optional<Cut> cut;           ///< of --cut or a plan; none: the work's own

  /// Returns how many stages the model's own markers must make.
  [[nodiscard]] int marked_stages() const { return cut ? 1 : stages; }
};

/// Facts of a model that are known before it is compiled, also for messages.
struct ModelStages {
  std::string name;
  bool may_branch = false;  ///< its stages may be a graph other than a chain
  std::string branching;    ///< the models that may branch, in words
};

/// Errors: UsageArgument for an unknown name or parameter, or a flag that contradicts the file or
///         the model; ScheduleParameter (V34) for values that the builder cannot take; UsageFile
///         for a file that cannot be opened; ScheduleParse for a file that is no schedule;
///         ScheduleInvalid, with the grid and every violation, for a schedule that breaks a rule.
[[nodiscard]] ScheduleChoice choose_schedule(const TrainOptions& options,
                                             const ModelStages& model,
                                             Console& console);

/// Returns how many ranks the options ask for, as far as they alone say; the schedule may have
/// another number. Errors: those of choose_schedule for a file.
[[nodiscard]] int expected_ranks(const TrainOptions& options, Console& console);

/// Returns the choice over the graph of the compiled model: schedules of stage graphs are built for
/// it.
/// Errors: UsageArgument for a --graph that differs.
[[nodiscard]] ScheduleChoice over_graph(const ScheduleChoice& choice,
                                        const TrainOptions& options,
                                        const StageGraph& graph);

/// Returns the choice arranged for costs, if the builder uses them.
[[nodiscard]] ScheduleChoice arranged_for(const ScheduleChoice& choice,
                                          const TrainOptions& options,
                                          const Costs& costs);

}  // namespace stagecraft::tools
