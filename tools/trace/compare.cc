#include "stagecraft/tools/trace/compare.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/verdict.h"
#include "stagecraft/tools/trace/report.h"
#include "stagecraft/tools/trace/trace_words.h"
#include "stagecraft/tools/trace/traced_run.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kCompareTraceCommand = "stagecraft trace compare";

struct CompareOptions {
  std::string plan;
  std::string trace;
  ReadOptions read;
  std::optional<std::string> costs;
  std::size_t limit = 10;
  bool json = false;
};

/// Returns whether a file's beginning names the version of a trace. A pipe can be read once, so it
/// is not looked at.
bool looks_like_trace(const std::string& path) {
  constexpr std::size_t kHeader = 4096;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return false;
  }
  std::ifstream file(path, std::ios::binary);
  std::string begin(kHeader, '\0');
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  return begin.find(kTraceVersionKey) != std::string::npos;
}

/// Errors: UsageArgument for a trace in the place of the schedule.
void refuse_swapped(const CompareOptions& o) {
  if (looks_like_trace(o.plan)) {
    wrong_usage(kCompareTraceCommand,
                fmt::format("PLAN expects a schedule, found the trace '{}'; {}",
                            o.plan,
                            looks_like_trace(o.trace)
                                ? "name the schedule of that run"
                                : "exchange the two files: the schedule comes first"));
  }
}

}  // namespace

ExitCode compare_trace(const std::vector<std::string>& words, Console& console) {
  CompareOptions o;
  CLI::App app(
      "Compares a traced run with its schedule: the makespan, how each rank spent it, and the "
      "cells that deviate most from their plan.",
      kCompareTraceCommand);
  app.add_option("PLAN", o.plan, "schedule file; - is standard input")
      ->required()
      ->type_name("FILE");
  app.add_option("TRACE", o.trace, "file that `stagecraft train --trace` wrote")
      ->required()
      ->type_name("FILE");
  add_read_options(app, o.read);
  app.add_option("--costs",
                 o.costs,
                 "costs to plan with [those of the run's --costs, or the times in the trace]")
      ->type_name("FILE");
  app.add_option("--limit", o.limit, "number of cells to print, largest deviation first [10]")
      ->check(whole_number(0))
      ->type_name("N");
  app.add_flag("--json", o.json, "print one JSON object");
  app.footer(
      "Exit status: 0 compared, with any differences; 1 the schedule breaks a rule; 2 wrong usage, "
      "or a file that cannot be read, is damaged or belongs to another schedule.\n"
      "Example: stagecraft trace compare plan.txt trace.json --limit 3");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  refuse_swapped(o);
  const ScheduleFile plan = read_schedule(o.plan, o.read, console);
  require_valid(plan);
  const Layout layout = Layout::of(plan.schedule);
  TracedRun run = read_run(o.trace, plan.schedule, plan.name);
  if (o.costs) {
    run.header.planned_with = {source_name(*o.costs), read_stage_costs(*o.costs, console)};
  }
  const Comparison comparison = compare(plan.schedule, plan.graph, run.costs(), run.measured);
  write_output(
      "",
      o.json ? command_json("trace compare",
                            comparison_json(comparison, run.measured, layout, run.header, o.limit))
             : comparison_text(comparison, run.measured, layout, run.header) + '\n' +
                   cells_text(comparison, layout, o.limit),
      console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
