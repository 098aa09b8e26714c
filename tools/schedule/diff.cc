/// `stagecraft schedule diff`
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/difference.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

std::string as_text(const Difference& difference) {
  if (!difference.none()) {
    return difference_text(difference);
  }
  const bool same_columns = difference.a.file.schedule == difference.b.file.schedule;
  return fmt::format(
      "equal{}: {}\n", same_columns ? "" : " (only columns differ)", size_text(difference.a.file));
}

}  // namespace

ExitCode diff_schedules(const Words& words, Console& console) {
  std::string path_a;
  std::string path_b;
  ReadOptions read;
  CostOptions options;
  bool json = false;
  CLI::App app(
      "Shows where two schedules differ on each device, and the effect on time and memory.",
      "stagecraft schedule diff");
  app.footer(
      "diff compares lists, because a run ignores columns. If one schedule cuts the model into "
      "more stages, durations and activations of its stages are scaled down, so that the whole "
      "model is the same work in both; --costs gives the costs of each stage instead.\n"
      "Exit status: 0 equal; 1 different; 2 wrong usage, or a file that cannot be read.\n"
      "Example: stagecraft schedule diff gpipe.txt 1f1b.txt");
  app.add_option("A", path_a, "schedule file; - is standard input")->required()->type_name("");
  app.add_option("B", path_b, "another schedule file")->required()->type_name("");
  add_read_options(app, read);
  add_cost_options(app, options);
  app.add_flag("--json", json, "print one JSON object");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  ScheduleFile file_a = read_schedule(path_a, read, console);
  ScheduleFile file_b = read_schedule(path_b, read, console);
  const Costs costs = costs_of(app, options, console);
  const Difference difference =
      find_difference(std::move(file_a), std::move(file_b), costs, !options.file.empty());
  write_output(
      "",
      json ? command_json("schedule diff", difference_json(difference)) : as_text(difference),
      console);
  return difference.none() ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
