/// Execution is a program with the schedule or the strategy that runs it, checked and lowered.
///
/// make_execution makes it once, before any rank exists. A Trainer runs it. `stagecraft train` also
/// reads its memory and its order from it.
/// EX-1: a strategy is checked and lowered once for all users of an execution: copies share program
///       and plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/pass_time.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/strategy/strategy.h"

namespace stagecraft {

struct Execution {
  Program program;      ///< as it was compiled
  Program sized;        ///< its stages at their sizes of microbatches, and in their chunks
  Schedule schedule;    ///< as ranks run it, with the driver's row if it has one
  Layout layout;        ///< of that schedule
  bool has_driver_row;  ///< the last rank is a thread of this process (native/on_driver.h)
  Strategy strategy;    ///< the given one, or that of the schedule
  std::shared_ptr<const Plan> plan;            ///< of a training step of `sized`
  std::vector<PassTime> lowering;              ///< the passes that made the plan
  std::vector<std::string> reordered_buffers;  ///< as in CheckResult
  std::vector<std::string> notes;              ///< likewise

  /// Returns the graph of the schedule's stages, copies included.
  [[nodiscard]] StageGraph stage_graph() const;
};

/// Makes the execution of a schedule, by the strategy that it stands for. `copies`: how copies of a
/// stage share gradients. `divided`: the tag of the regions (sc::region) whose weights copies
/// divide among them, e.g. "EP"; empty: none. `parts`: how many copies divide them, 0: all
/// (ShardDirective).
/// Errors: ScheduleInvalid with every violation on the grid, or without such a region; those of
/// resize (resize.h); CompilePartition for a region that cannot be divided.
[[nodiscard]] Execution make_execution(const Program& program,
                                       const Schedule& schedule,
                                       const ReplicateOptions& copies = {},
                                       std::string_view divided = {},
                                       int parts = 0);

/// Makes the execution of a strategy; its schedule is the order in which its ranks compute
/// (schedule_of.h).
/// Errors: ScheduleInvalid with every fault of the strategy; likewise.
[[nodiscard]] Execution make_execution(const Program& program, const Strategy& strategy);

}  // namespace stagecraft
