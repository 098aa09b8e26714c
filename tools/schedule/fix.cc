/// `stagecraft schedule fix`
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/format.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/repair_steps.h"

namespace stagecraft::tools {
namespace {

/// Returns what else the user can do.
std::string other_help(const ScheduleFile& file) {
  if (!file.communication.empty() && validate(file.schedule, file.graph).empty()) {
    return fmt::format(
        "the tasks are right and only their communication is not; stagecraft schedule convert --to "
        "{} lays it out again",
        communication_format());
  }
  return "stagecraft schedule check shows all";
}

/// Returns what the columns of the violations are, if the steps left those of the file.
const char* columns_text(const ScheduleFile& file, const Repaired& repaired) {
  return file.schedule.form() == repaired.schedule.form()
             ? ""
             : " (columns count the tasks of a row, without bubbles)";
}

std::string tried_text(const Repaired& repaired) {
  return repaired.steps.empty()
             ? "no repair is known for"
             : fmt::format("{} not enough for",
                           repaired.steps.size() == 1
                               ? "one step is"
                               : fmt::format("{} steps are", repaired.steps.size()));
}

[[noreturn]] void not_enough(const ScheduleFile& file, const Repaired& repaired) {
  throw Error(Errc::ScheduleInvalid,
              fmt::format("{} {}: {} {}, the first: {}{}; {}",
                          tried_text(repaired),
                          file.name,
                          count_text(repaired.left.size(), "violation"),
                          repaired.left.size() == 1 ? "remains" : "remain",
                          to_string(repaired.left.front()),
                          columns_text(file, repaired),
                          other_help(file)));
}

}  // namespace

ExitCode fix_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  std::string output;
  CLI::App app(
      "Repairs a schedule by small changes, and prints each: a mistyped number, two cells to "
      "exchange, columns that are too early.",
      "stagecraft schedule fix");
  app.footer(
      "Exit status: 0 the result is valid; 1 the changes are not enough and nothing is written; 2 "
      "wrong usage, or a file that cannot be read.\n"
      "Example: stagecraft schedule fix broken.txt -o mended.txt");
  add_file_argument(app, path);
  add_read_options(app, read);
  app.add_option("-o,--output", output, "file to write, as text [standard output]")
      ->type_name("FILE");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  check_all_apart(files_read(path, read), {{"--output", output}});
  const ScheduleFile file = read_schedule(path, read, console);
  const Repaired repaired = repair_steps(file);
  for (const std::string& step : repaired.steps) {
    console.err << step << '\n';
  }
  if (!repaired.left.empty()) {
    not_enough(file, repaired);
  }
  write_output(output, to_string(repaired.schedule), console);
  if (repaired.steps.empty()) {
    console.err << "already valid: nothing to repair\n";
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
