/// FigureColumn is one figure of compared schedules, for tables, pages and programs. The commands
/// compare and sweep print them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/simulate/schedule_figures.h"

namespace stagecraft::tools {

struct FigureColumn {
  const char* name;  ///< for people
  const char* key;   ///< of JSON and CSV
  double (*value)(const ScheduleFigures&);
  std::string (*text)(double);
};

/// Returns the columns, stages first. `bytes`: also peak bytes, last.
[[nodiscard]] std::span<const FigureColumn> figure_columns(bool bytes);

/// Returns the figures for people, one per column.
[[nodiscard]] std::vector<std::string> figure_texts(const ScheduleFigures& figures, bool bytes);

/// Returns the figures for programs, by the columns' keys.
[[nodiscard]] nlohmann::ordered_json figures_json(const ScheduleFigures& figures, bool bytes);

}  // namespace stagecraft::tools
