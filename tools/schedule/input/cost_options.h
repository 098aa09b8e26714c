/// cost_options reads the costs of tasks, transfers and activations for a command: durations on the
/// command line, or a costs.json.
#pragma once

#include <cstddef>
#include <string>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/schedule_figures.h"
#include "stagecraft/scheduler/simulate/simulate.h"
#include "stagecraft/tools/common/console.h"

namespace CLI {
class App;
}

namespace stagecraft::tools {

struct CostOptions {
  Durations durations;
  double latency = 0;
  std::string file;
};

/// Adds --f, --b, --i, --w, --latency and --costs. `options` must outlive the parse.
void add_cost_options(CLI::App& app, CostOptions& options);

/// Returns the costs that the parsed options give.
/// Errors: UsageArgument for a file together with durations; those of read_costs.
[[nodiscard]] Costs costs_of(const CLI::App& app, const CostOptions& options, Console& console);

/// Returns the costs of a file, or of standard input for "-". Notes unknown contents on standard
/// error.
/// Errors: UsageFile; ScheduleParse with file, line and column.
[[nodiscard]] Costs read_costs(const std::string& path,
                               Console& console,
                               const char* option = "--costs");

/// Does the same for commands that use stages.
/// Errors: also UsageFile for a file of operators alone, whose stages would all get the default.
[[nodiscard]] Costs read_stage_costs(const std::string& path, Console& console);

/// Notes on standard error if the costs of a file cover too little of the schedule, or belong to
/// another one: missing costs get the default. `file`: empty if the costs come from no file.
void note_misfit(const std::string& file,
                 const Costs& costs,
                 const Schedule& schedule,
                 const StageGraph& graph,
                 Console& console);
/// Does the same for so many stages without a schedule.
void note_misfit(const std::string& file, const Costs& costs, int stages, Console& console);

/// Errors: UsageArgument if the makespan is no number, or times so many rows, as idle time adds
/// them up.
void require_finite(double makespan, std::size_t rows);

/// Returns whether the costs contain any bytes that are held.
[[nodiscard]] bool knows_memory(const Costs& costs);

/// Return the schedule's timeline, and its figures, at these costs.
/// Errors: UsageArgument if times add up to more than any number holds.
[[nodiscard]] Timeline timeline_of(const Schedule& schedule,
                                   const StageGraph& graph,
                                   const Costs& costs);
[[nodiscard]] ScheduleFigures figures_of(const Schedule& schedule,
                                         const StageGraph& graph,
                                         const Costs& costs);

}  // namespace stagecraft::tools
