/// FigureColumn: one figure of compared schedules, as tables, pages and programs have it. What
/// compare and sweep print is this list.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule_figures.h"

namespace stagecraft::tools {

struct FigureColumn {
  const char* name;  ///< for people
  const char* key;   ///< of JSON and CSV
  double (*value)(const ScheduleFigures&);
  std::string (*text)(double);
};

/// Stages first. `bytes`: peak bytes too, last.
[[nodiscard]] std::span<const FigureColumn> figure_columns(bool bytes);

/// The figures as people read them, one for each column.
[[nodiscard]] std::vector<std::string> figure_texts(const ScheduleFigures& figures, bool bytes);

}  // namespace stagecraft::tools
