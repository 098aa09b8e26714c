/// surplus finds the tasks of a schedule that do nothing because their stage needs no such
/// gradient.
///
/// A schedule for a chain lists backwards of every stage, even if the stage has nothing to train (a
/// frozen backbone in front) or gets no gradient (an integer output, a stage that the loss does not
/// use). Such a task is an ordinary cell of its row and costs nothing. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Surplus holds the surplus tasks of one kind of one stage.
struct Surplus {
  StageId stage;
  CellKind kind = CellKind::Backward;
  std::size_t tasks = 0;

  friend bool operator==(const Surplus&, const Surplus&) = default;
};

/// Returns them by stage, then kind; empty if every task does something.
[[nodiscard]] std::vector<Surplus> find_surplus(const Schedule& schedule, const StageGraph& graph);

/// Returns "12 tasks do nothing: 8 B of stages 0, 1 (no backward), 4 W of stage 2 (no weights to
/// train)".
[[nodiscard]] std::string to_string(const std::vector<Surplus>& surplus, const StageGraph& graph);

}  // namespace stagecraft
