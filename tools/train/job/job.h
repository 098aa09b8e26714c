/// TrainJob: all that a run needs, made and judged before the first worker starts.
#pragma once

#include <memory>
#include <vector>

#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/common/memory_limits.h"
#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/train/job/decide.h"
#include "stagecraft/tools/train/job/memory_bill.h"
#include "stagecraft/tools/train/job/planned.h"
#include "stagecraft/tools/train/models/work.h"
#include "stagecraft/tools/train/options/options.h"

namespace stagecraft::tools {

struct TrainJob {
  TrainOptions options;  ///< with what the work settled
  std::unique_ptr<Work> work;
  ScheduleChoice choice;
  Program program;
  Program laid_out;  ///< one copy per replica; the plan's program
  Plan plan;         ///< of a training step
  MemoryBill memory;
  std::vector<MemoryLimit> limits;    ///< from before the model was built
  std::optional<PlannedRun> planned;  ///< with --plan
  std::optional<PlannedWith> costs;   ///< of --costs, for this schedule
  std::optional<Costs> costs_out;     ///< with --costs-out: the costs known before the run
};

/// Tests the output paths, reads the text or the model, settles the schedule, judges the memory and
/// compiles the model. Steps that can fail fast come first. Then writes --cut-out and, for a dry
/// run, --costs-out.
/// Errors: those of each step; UsageFile for a file that could not be written later, and for two
///         options that name one file if one output would be lost; DeviceOutOfMemory, with the
///         bill, if memory does not suffice, unless forced; ScheduleInvalid for a schedule that the
///         model's stages cannot follow; UsageFile for a --costs that has nothing about this run.
[[nodiscard]] TrainJob make_job(const TrainOptions& options, Console& console);

/// Returns the optimizer with the defaults of this command (docs/train-command.md) and the given
/// settings.
/// Errors: UsageArgument for settings that contradict each other.
[[nodiscard]] Optimizer make_optimizer(const TrainOptions& options);
/// Returns the groups of --freeze and --no-decay.
[[nodiscard]] std::vector<ParameterGroup> make_groups(const TrainOptions& options);
[[nodiscard]] DecayOn make_decay_on(const TrainOptions& options);
[[nodiscard]] LearningRate make_learning_rate(const TrainOptions& options);

}  // namespace stagecraft::tools
