/// Which schedule a run follows: a builder's by name, or the user's own from a file.
///
/// SC-1: what comes back has passed validate(), once per replica, on the graph of `stages` stages
/// that is known by then: a chain, where the model is one; before others are compiled that of
/// --graph or of the schedule file, else a chain. Whoever compiled the model has it chosen over the
/// model's own graph (over_graph), and check() judges it.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/cut/cut.h"
#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/train/options.h"

namespace stagecraft::tools {

/// Where neither the options nor a schedule file say.
inline constexpr int kDefaultMicrobatches = 8;

struct ScheduleChoice {
  Schedule schedule;
  Layout layout;   ///< of the schedule
  int stages = 0;  ///< of the model; a schedule of two replicas has twice as many
  int microbatches = 0;
  std::optional<StageGraph> given;  ///< of --graph
  std::optional<Cut> cut;           ///< of --cut or a plan; none: the work's own

  /// How many stages the model's own markers have to make.
  [[nodiscard]] int marked_stages() const { return cut ? 1 : stages; }
};

/// What is known of a model before it is compiled, for messages too.
struct ModelStages {
  std::string name;
  bool may_branch = false;  ///< its stages can be another graph than a chain
  std::string branching;    ///< the models of which that is so, in words
};

/// Errors: UsageArgument for an unknown name or parameter, or a flag that contradicts the file or
///         the model;
///         ScheduleParameter (V34) for values the builder cannot take;
///         UsageFile for a file that cannot be opened; ScheduleParse for one that is no schedule;
///         ScheduleInvalid, with the grid and every violation, for one that breaks a rule.
[[nodiscard]] ScheduleChoice choose_schedule(const TrainOptions& options,
                                             const ModelStages& model,
                                             Console& console);

/// How many ranks the options ask for, as far as they alone say; the schedule may have others.
/// Errors: those of choose_schedule for a file.
[[nodiscard]] int expected_ranks(const TrainOptions& options, Console& console);

/// The same over the graph that the compiled model has: schedules of stage graphs are made for it.
/// Errors: UsageArgument for a --graph that says otherwise.
[[nodiscard]] ScheduleChoice over_graph(const ScheduleChoice& choice,
                                        const TrainOptions& options,
                                        const StageGraph& graph);

/// The same arranged for costs, where the builder looks at them.
[[nodiscard]] ScheduleChoice arranged_for(const ScheduleChoice& choice,
                                          const TrainOptions& options,
                                          const Costs& costs);

}  // namespace stagecraft::tools
