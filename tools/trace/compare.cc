#include "stagecraft/tools/trace/compare.h"

#include <filesystem>
#include <fstream>
#include <optional>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/verdict.h"
#include "stagecraft/tools/trace/report.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tools {
namespace {

struct CompareOptions {
  std::string plan;
  std::string trace;
  ReadOptions read;
  std::optional<std::string> costs;
  std::size_t limit = 10;
  bool json = false;
};

/// The contents of a trace, after every step was found to belong to the plan.
struct TracedRun {
  TraceHeader header;
  Measurements measured;
};

std::ifstream open_trace(const std::string& path) {
  std::error_code ignored;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, ignored)) {
    throw Error(Errc::UsageFile,
                fmt::format("TRACE expects a file that stagecraft train --trace wrote, found {} "
                            "'{}'",
                            file ? "the directory" : "none that can be read at",
                            path));
  }
  return file;
}

/// Returns the first point where the step belongs to another schedule; nothing if it was measured.
std::optional<std::string> measure(const TraceStep& traced,
                                   const Schedule& schedule,
                                   const Layout& layout,
                                   Measurements& measured) {
  if (traced.ranks.size() != static_cast<std::size_t>(layout.ranks())) {
    return fmt::format(
        "the schedule runs on {} ranks, the step on {}", layout.ranks(), traced.ranks.size());
  }
  const MeasuredStep step = measured_step(traced, layout);
  if (auto difference = first_difference(schedule, step)) {
    return difference;
  }
  measured.add(step);
  return std::nullopt;
}

TracedRun read_run(const std::string& path, const ScheduleFile& plan, const Layout& layout) {
  std::ifstream file = open_trace(path);
  TracedRun run;
  run.header = read_trace(file, path, [&](const TraceStep& traced) {
    if (const auto difference = measure(traced, plan.schedule, layout, run.measured)) {
      throw Error(
          Errc::UsageFile,
          fmt::format("the trace '{}' does not belong to the schedule {}: {} (step {}); name "
                      "the schedule of that run",
                      path,
                      plan.name,
                      *difference,
                      traced.step));
    }
  });
  if (run.measured.steps() == 0) {
    throw Error(
        Errc::UsageFile,
        fmt::format("the trace '{}' holds no step: the run ended before its first did", path));
  }
  return run;
}

}  // namespace

ExitCode compare_trace(const std::vector<std::string>& words, Console& console) {
  CompareOptions o;
  CLI::App app(
      "Compares a traced run with its schedule: the makespan, how each rank spent it, and the "
      "cells that deviate most from their plan.",
      "stagecraft trace compare");
  app.add_option("PLAN", o.plan, "schedule file; - is standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("TRACE", o.trace, "file that `stagecraft train --trace` wrote")
      ->required()
      ->type_name("FILE");
  app.add_option("--costs",
                 o.costs,
                 "costs to plan with [those of the run's --costs, or the times in the trace]")
      ->type_name("FILE");
  app.add_option("--limit", o.limit, "number of cells to print, largest deviation first [10]")
      ->check(whole_number(0))
      ->type_name("N");
  app.add_flag("--json", o.json, "print one JSON object");
  add_read_options(app, o.read);
  app.footer(
      "Exit status: 0 compared, with any differences; 1 the schedule breaks a rule; 2 a "
      "file that cannot be read, is truncated or belongs to another schedule.");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFile plan = read_schedule(o.plan, o.read, console);
  require_valid(plan);
  const Layout layout = Layout::of(plan.schedule);
  TracedRun run = read_run(o.trace, plan, layout);
  if (o.costs) {
    run.header.planned_with = {source_name(*o.costs), read_stage_costs(*o.costs, console)};
  }
  const Costs costs =
      run.header.planned_with ? run.header.planned_with->costs : run.measured.costs();
  const Comparison comparison = compare(plan.schedule, plan.graph, costs, run.measured);
  write_output("",
               o.json
                   ? comparison_json(comparison, run.measured, layout, run.header, o.limit) + '\n'
                   : comparison_text(comparison, run.measured, layout, run.header) + '\n' +
                         cells_text(comparison, layout, o.limit),
               console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
