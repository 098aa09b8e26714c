/// render draws the grid for a terminal, with the offending cells in brackets and the violations
/// below.
///
///          0   1     2     3   4   5
///     d0  0F0 0F1  [0B0]   .   .  0B1
///     d1   .  1F0  [1B0]  1F1 1B1  .
///
/// Tasks that do nothing are in parentheses, and a line below the grid gives the reason.
///
/// Pure; the caller knows the width of the terminal and whether it has colors.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"

namespace stagecraft {

struct RenderOptions {
  int width = 100;     ///< wider grids continue in further blocks of columns
  bool color = false;  ///< ANSI colors: one per stage, backwards filled, offending cells on red
  /// Decides which tasks do nothing; absent: the schedule's own graph.
  const StageGraph* graph = nullptr;
};

/// Returns the grid and the violations, one line each. Shows every block of columns with a marked
/// cell, and the first blocks of a long schedule. A line lists the blocks that are left out.
[[nodiscard]] std::string render(const Schedule& schedule,
                                 const std::vector<Violation>& violations = {},
                                 const RenderOptions& options = {});

}  // namespace stagecraft
