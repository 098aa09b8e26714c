/// lint_notes finds parts of a valid schedule that its author may not have meant.
///
/// Rules (validate.h) find schedules that cannot run. This file finds parts that run and deserve a
/// second look: cells that wait for nothing, devices without work, both kinds of backward in one
/// stage. Pure; any thread.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct LintNote {
  std::string kind;     ///< "late-cells": the name of the function in lint.cc
  std::string message;  ///< the finding, and the usual form
};

/// Returns all notes. Requires: the schedule is valid for the graph.
[[nodiscard]] std::vector<LintNote> lint_notes(const Schedule& schedule, const StageGraph& graph);

}  // namespace stagecraft
