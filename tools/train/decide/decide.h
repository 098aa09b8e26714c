/// decide settles the open decisions of a run in this order; each uses the facts known by then:
///
///     sizes        of microbatches, batches and steps: options, data, the cut's file
///     schedule     of a planner, a file, a strategy, or a builder by its name
///     program      the model, compiled for this cut
///     graph        schedules of stage graphs are built again, for the graph of the program
///     execution    the program, checked against the schedule and lowered
///     costs        schedules that depend on costs are built again, for the costs of the program,
///                  and lowered again if they have changed
///
/// SC-1: the schedule has passed validate(), once per replica, on the graph that was known before
///       the program (a chain, --graph, or the file's own), and check() on the program.
#pragma once

#include <functional>
#include <optional>

#include "stagecraft/actors/trainer/execution.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/trace/planned_with.h"
#include "stagecraft/tools/train/decide/choice.h"
#include "stagecraft/tools/train/decide/planned.h"
#include "stagecraft/tools/train/options/options.h"
#include "stagecraft/tools/train/work/work.h"

namespace stagecraft::tools {

struct Decision {
  Choice choice;
  Execution execution;                    ///< of the program by the choice's schedule
  std::optional<PlannedRun> planned;      ///< with --plan
  std::optional<PlannedWith> costs_file;  ///< --costs, unchanged
  std::optional<PlannedWith> costs;       ///< of these, those of the schedule's stages and links
};

/// CompileChoice compiles the work for a choice that may still change its order, not its shape.
using CompileChoice = std::function<Program(const Choice&)>;

/// Settles the decisions.
/// Errors: UsageArgument for an unknown name or parameter, and for options that contradict the
/// data, a file or the model; ScheduleParameter (V34) for values that the builder cannot take;
/// UsageFile for a file that cannot be read, and for a --costs that has nothing about this run;
/// ScheduleParse for a file that is no schedule; ScheduleInvalid, with the grid and every
/// violation, for a schedule that breaks a rule or that the model's stages cannot follow; those of
/// `compile` and of plan_run().
[[nodiscard]] Decision decide(const TrainOptions& options,
                              Work& work,
                              const CompileChoice& compile,
                              Console& console);

/// Returns how copies of the pipeline sum gradients and share at a level (--zero), by
/// --bucket-size.
[[nodiscard]] ReplicateOptions sharing_of(const PipelineOptions& options, Sharing level);

/// Returns the number of ranks that follows from the options and a schedule file; the schedule may
/// get another number. Errors: those of decide() for a file.
[[nodiscard]] int expected_ranks(const TrainOptions& options, Console& console);

}  // namespace stagecraft::tools
