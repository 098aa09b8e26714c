/// `stagecraft schedule fix`
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/validate.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input.h"
#include "stagecraft/tools/schedule/number_text.h"
#include "stagecraft/tools/schedule/verdict.h"

namespace stagecraft::tools {
namespace {

/// What else helps, where it is known.
std::string other_help(const ScheduleFile& file) {
  if (!file.communication.empty() && validate(file.schedule, file.graph).empty()) {
    return "the tasks are right and only their communication is not: stagecraft schedule convert "
           "--to pytorch-comms lays it out anew";
  }
  const bool array = file.schedule.form() == Schedule::Form::Array;
  if (array && validate(file.schedule.to_list(), file.graph).empty()) {
    return "every row has the right order and only columns are too early: stagecraft schedule "
           "convert --to list drops them";
  }
  return "stagecraft schedule check shows all";
}

[[noreturn]] void not_enough(const ScheduleFile& file, const std::vector<Violation>& left) {
  throw Error(Errc::ScheduleInvalid,
              fmt::format("no single exchange repairs {}: {} {}, the first: {}; {}",
                          file.name,
                          count_text(left.size(), "violation"),
                          left.size() == 1 ? "remains" : "remain",
                          to_string(left.front()),
                          other_help(file)));
}

struct Fixed {
  Schedule schedule;
  std::string what_was_done;
};

Fixed fixed(const ScheduleFile& file) {
  const std::vector<Violation> violations = violations_of(file);
  if (violations.empty()) {
    return {file.schedule, "valid already: nothing to repair\n"};
  }
  const auto exchange = proposed_exchange(violations);
  if (!exchange) {
    not_enough(file, violations);
  }
  Schedule repaired = apply(file.schedule, *exchange);
  const std::vector<Violation> left = validate(repaired, file.graph);
  if (!left.empty()) {
    not_enough(file, left);
  }
  return {std::move(repaired), fmt::format("exchanged {}\n", to_string(*exchange, file.schedule))};
}

}  // namespace

ExitCode fix_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  std::string output;
  CLI::App app("Makes the exchange of two cells that `stagecraft schedule check` proposes.",
               "stagecraft schedule fix");
  app.footer(
      "Exit status: 0 the result is valid, 1 one exchange is not enough, 2 unreadable or "
      "wrong usage.");
  add_file_argument(app, path);
  app.add_option("-o,--output", output, "where to write, as text [standard output]")
      ->type_name("FILE");
  add_read_options(app, read);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFile file = read_schedule(path, read, console);
  const Fixed result = fixed(file);
  write_output(output, to_string(result.schedule), console);
  console.err << result.what_was_done;
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
