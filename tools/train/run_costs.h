/// run_costs: the costs that a run is predicted with (--costs), and those that it leaves for the
/// next run, for builders and for planners (--costs-out).
///
///     train --costs-out FILE -> schedule make zb-auto, simulate --costs FILE -> train --costs FILE
///
/// Both are a costs.json: what an earlier run measured of stages and links, or what a profile
/// measured of operators, which the cut of this run adds up to stages.
#pragma once

#include <optional>

#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/costs.h"
#include "stagecraft/tools/console.h"
#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/train/options.h"
#include "stagecraft/tools/train/schedule_choice.h"
#include "stagecraft/tools/train/work.h"

namespace stagecraft::tools {

/// Returns the file of --costs, as it stands there; none where none is given.
/// Errors: those of read_costs.
[[nodiscard]] std::optional<PlannedWith> given_costs(const TrainOptions& options, Console& console);

/// Returns what the stages and links of the schedule take by a file. Requires: the program has the
/// schedule's stages.
/// Errors: UsageFile, saying which file is wanted, for operators of another model and for costs
///         that do not fit the schedule; UsageArgument when times add up to more than any number.
[[nodiscard]] PlannedWith costs_of_schedule(const PlannedWith& given,
                                            const TrainOptions& options,
                                            const ScheduleChoice& choice,
                                            const Program& program);

/// Returns the costs that --costs-out writes, but for what the run measures: operators as the file
/// has them, else measured now; stages as `planned` has them, else as their operators add up.
/// `given`, `planned`: of --costs, as it stands there and for the schedule.
/// Errors: those of measure_operators.
[[nodiscard]] Costs costs_before_run(const std::optional<PlannedWith>& given,
                                     const std::optional<PlannedWith>& planned,
                                     const TrainOptions& options,
                                     const ScheduleChoice& choice,
                                     const Program& program,
                                     const Work& work);

}  // namespace stagecraft::tools
