/// Panel is one of the schedules that a picture draws, with what is known about it. Pictures of
/// several schedules draw them one above the other on one axis. A view: it owns only its name.
#pragma once

#include <span>
#include <string>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

struct Panel {
  const Schedule* schedule = nullptr;  ///< never null
  const StageGraph* graph = nullptr;   ///< never null
  /// The schedule's own; null: entries are drawn at the columns of an array, or the positions of a
  /// list.
  const Timeline* timeline = nullptr;
  std::span<const Violation> violations = {};
  std::string name = {};  ///< above its rows; empty: none
};

}  // namespace stagecraft
