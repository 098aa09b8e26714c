/// Execution: a program with the schedule that runs it: checked, laid out and lowered.
///
/// Made once by make_execution, from a program and a schedule alone, before any rank exists. A
/// Trainer runs it. `stagecraft train` also reads its memory and its order from it.
/// EX-1: a schedule is checked and lowered once, however many users an execution has: copies share
///       program and plan.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

struct Execution {
  Program program;   ///< as it was compiled
  Program laid_out;  ///< its stages at their sizes of microbatches, one copy per replica
  Schedule schedule;
  Layout layout;
  std::shared_ptr<const Plan> plan;            ///< of a training step of `laid_out`
  std::vector<std::string> reordered_buffers;  ///< as in CheckResult
  std::vector<std::string> notes;              ///< likewise
};

/// Errors: ScheduleInvalid with every violation on the grid; those of resize (resize.h).
[[nodiscard]] Execution make_execution(const Program& program, const Schedule& schedule);

}  // namespace stagecraft
