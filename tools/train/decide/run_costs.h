/// run_costs handles the costs with which a run is predicted (--costs), and those that it writes
/// for the next run, for builders and for planners (--costs-out).
///
///     train --costs-out FILE -> schedule make zb-auto, simulate --costs FILE -> train --costs FILE
///
/// Both are a costs.json: the stages and links that an earlier run measured, or the operators that
/// a profile measured, which the cut of this run adds up to stages.
#pragma once

#include <optional>

#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

/// Returns the file of --costs, unchanged; none if the option is not given.
/// Errors: those of read_costs.
[[nodiscard]] std::optional<PlannedWith> given_costs(const CostFiles& files, Console& console);

/// Returns the costs of the schedule's stages and links from a file.
/// Requires: the program has the schedule's stages.
/// Errors: UsageFile, saying which file is needed, for operators of another model and for costs
///         that do not fit the schedule; UsageArgument if times add up to more than any number.
[[nodiscard]] PlannedWith costs_of_schedule(const PlannedWith& given,
                                            const WorkerOptions& workers,
                                            const Choice& choice,
                                            const Program& program);

/// Returns the costs for --costs-out, without those that the run measures: operators of the file,
/// or measured now if it has none; stages of `planned`, or the sums of their operators. `given`,
/// `planned`: of --costs, unchanged and for the schedule.
/// Errors: those of measure_operators.
[[nodiscard]] Costs costs_before_run(const std::optional<PlannedWith>& given,
                                     const std::optional<PlannedWith>& planned,
                                     const WorkerOptions& workers,
                                     const Choice& choice,
                                     const Program& program,
                                     const Work& work);

}  // namespace stagecraft::tools
