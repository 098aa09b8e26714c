/// `stagecraft schedule lint`
#include "stagecraft/scheduler/notes/lint.h"

#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

std::string as_json(const std::vector<LintNote>& notes) {
  Json list = Json::array();
  for (const LintNote& note : notes) {
    list.push_back({{"kind", note.kind}, {"message", note.message}});
  }
  return command_json("schedule lint", {{"remarks", list}});
}

std::string as_text(const ScheduleFile& file, const std::vector<LintNote>& notes) {
  if (notes.empty()) {
    return fmt::format("nothing unusual: {}\n", size_text(file));
  }
  std::string text;
  for (const LintNote& note : notes) {
    text += fmt::format("{}: {}\n", note.kind, note.message);
  }
  return text;
}

}  // namespace

ExitCode lint_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  bool json = false;
  CLI::App app("Reports parts of a valid schedule that are legal but unusual.",
               "stagecraft schedule lint");
  app.footer(
      "Exit status: 0 nothing is unusual; 1 something is, or a rule is broken; 2 wrong usage, or a "
      "file that cannot be read.\n"
      "Example: stagecraft schedule lint plan.txt");
  add_file_argument(app, path);
  add_read_options(app, read);
  app.add_flag("--json", json, "print one JSON object");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFile file = read_schedule(path, read, console);
  require_valid(file);
  const std::vector<LintNote> notes = lint_notes(file.schedule, file.graph);
  write_output("", json ? as_json(notes) : as_text(file, notes), console);
  return notes.empty() ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
