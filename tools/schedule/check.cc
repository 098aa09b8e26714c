/// `stagecraft schedule check`
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/base/byte_count.h"
#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/costs/row_devices.h"
#include "stagecraft/scheduler/notes/sharing_misfit.h"
#include "stagecraft/scheduler/strategy/sharing.h"
#include "stagecraft/tools/common/color_option.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

Json place_json(int place) {
  return place == Violation::kNowhere ? Json(nullptr) : Json(place);
}

/// Returns the two cells to exchange, or the one to rewrite, or nothing.
Json repair_json(const Schedule& schedule, const Violation& v) {
  Json cells = Json::array();
  if (v.repair) {
    for (const int column : {v.repair->first, v.repair->second}) {
      const auto& row = schedule.rows()[static_cast<std::size_t>(v.repair->row)];
      cells.push_back({{"row", v.repair->row},
                       {"column", column},
                       {"task", to_string(row[static_cast<std::size_t>(column)])}});
    }
  }
  if (const auto& m = v.mistyped) {
    cells.push_back({{"row", m->row},
                     {"column", m->column},
                     {"task", to_string(m->found)},
                     {"meant", to_string(m->meant)}});
  }
  return cells;
}

Json task_json(const std::optional<Task>& task) {
  return task ? Json(to_string(*task)) : Json(nullptr);
}

Json ranges_json(const std::vector<NumberRange>& ranges) {
  Json list = Json::array();
  for (const auto& [first, last] : ranges) {
    list.push_back({first, last});
  }
  return list;
}

/// Returns the other cells that break the rule for the same cause.
Json more_json(const Violation& v) {
  Json list = Json::array();
  for (const Violation::SameCause& alike : v.more) {
    list.push_back({{"row", place_json(alike.row)},
                    {"column", place_json(alike.column)},
                    {"task", task_json(alike.task)},
                    {"missing", alike.missing}});
  }
  return list;
}

Json violation_json(const Schedule& schedule, const Violation& v) {
  Json cycle = Json::array();
  for (const Task& task : v.cycle) {
    cycle.push_back(to_string(task));
  }
  Json violation{{"rule", v.rule},
                 {"row", place_json(v.row)},
                 {"column", place_json(v.column)},
                 {"task", task_json(v.task)},
                 {"message", v.message},
                 {"cycle", cycle},
                 {"repair", repair_json(schedule, v)}};
  if (!v.more.empty()) {
    violation["missing"] = v.missing;
    violation["more"] = more_json(v);
  }
  if (!v.stages.empty()) {
    violation["stages"] = ranges_json(v.stages);
    violation["microbatches"] = ranges_json(v.microbatches);
  }
  return violation;
}

std::string verdict_json(const ScheduleFile& file, const std::vector<Violation>& violations) {
  Json list = Json::array();
  for (const Violation& v : violations) {
    list.push_back(violation_json(file.schedule, v));
  }
  return command_json("schedule check", {{"valid", violations.empty()}, {"violations", list}});
}

/// Between two pipes, writes the verdict to standard error. The next command can then read a valid
/// schedule, and the report on an invalid one does not vanish in the pipe.
void pass_on(const ScheduleFile& file, const std::vector<Violation>& violations, Console& console) {
  if (violations.empty()) {
    write_output("", file.text, console);
    console.err << fmt::format("valid: {}\n", size_text(file));
    return;
  }
  console.err << report_text(file, violations, console);
}

/// Errors: UsageArgument if there are no copies; UsageFile for costs that do not say what copies
/// could share.
void require_shareable(const ScheduleFile& file,
                       const MemoryModel& memory,
                       std::string_view costs) {
  if (file.graph.replicas() == 1 && file.schedule.headers().places.empty()) {
    throw Error(Errc::UsageArgument,
                "--zero says what copies of a stage share, and the schedule has no copies: leave "
                "it out, or state them by @place or @replicas");
  }
  if (memory.trained.empty()) {
    throw Error(Errc::UsageFile,
                fmt::format("--costs {} does not say which part of \"fixed\" copies can share: add "
                            "\"trained\" and \"states\" to each stage, as stagecraft train "
                            "--costs-out writes them",
                            costs));
  }
  for (std::size_t s = 0; s < memory.trained.size(); ++s) {
    const double parts = 2 * memory.trained[s] + (s < memory.states.size() ? memory.states[s] : 0);
    const double fixed = s < memory.fixed.size() ? memory.fixed[s] : 0;
    if (parts > fixed * (1 + 1e-9)) {
      throw Error(Errc::UsageFile,
                  fmt::format("--costs {}: stage {} holds {} of \"fixed\", which must have "
                              "\"trained\" twice (weights and gradients) and \"states\", {}",
                              costs,
                              s,
                              bytes_text(fixed),
                              bytes_text(parts)));
    }
  }
}

}  // namespace

ExitCode check_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  bool json = false;
  std::string costs;
  std::int64_t budget = 0;
  int level = 0;
  CLI::App app("Proves that a schedule can run, or shows every rule it breaks.",
               "stagecraft schedule check");
  app.footer(
      "If input and output are pipes, the command passes a valid schedule on unchanged and writes "
      "the verdict to standard error.\n"
      "Exit status: 0 valid; 1 violations; 2 wrong usage, or a file that cannot be read.\n"
      "Example: stagecraft schedule check plan.txt");
  add_file_argument(app, path);
  add_read_options(app, read);
  app.add_option("--costs", costs, "costs.json with the bytes that stages hold; needs --budget")
      ->type_name("FILE");
  app.add_option("--budget",
                 budget,
                 "bytes that each row may hold, e.g. 4G, unless \"devices\" of the costs state "
                 "them; needs --costs")
      ->transform(byte_number())
      ->type_name("BYTES");
  app.add_option("--zero",
                 level,
                 "what copies of a stage share, as for train: 1 the optimizer's state, 2 gradients "
                 "too, 3 weights too; needs --costs [0]")
      ->check(whole_number(0, 3))
      ->type_name("LEVEL");
  app.add_flag("--json", json, "print one JSON object");
  add_color_option(app, console);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  if ((app.count("--costs") > 0) != (app.count("--budget") > 0)) {
    wrong_usage(app.get_name(),
                "expected --costs FILE with --budget BYTES, found only one of them");
  }
  if (level > 0 && costs.empty()) {
    wrong_usage(app.get_name(), "expected --zero with --costs FILE and --budget BYTES");
  }
  const ScheduleFile file = read_schedule(path, read, console);
  std::optional<MemoryModel> memory;
  if (!costs.empty()) {
    const Costs known = read_costs(costs, console);
    memory = known.stages.memory;
    memory->budgets = memory_of_rows(known.devices, file.schedule, static_cast<double>(budget));
  }
  const auto sharing = static_cast<Sharing>(level);
  if (sharing != Sharing::Nothing) {
    require_shareable(file, *memory, source_name(costs));
  }
  const std::vector<Violation> violations = violations_of(file, memory, sharing);
  if (std::ranges::all_of(violations, [](const Violation& v) { return v.rule == "V30"; })) {
    if (const auto misfit = sharing_misfit(file.schedule, file.graph, sharing)) {
      throw Error(Errc::UsageArgument, fmt::format("--zero {}: {}", level, *misfit));
    }
  }
  if (json) {
    write_output("", verdict_json(file, violations), console);
  } else if (path == "-" && !console.out_is_terminal) {
    pass_on(file, violations, console);
  } else if (violations.empty()) {
    write_output("", fmt::format("valid: {}\n", size_text(file)), console);
  } else {
    write_output("", report_text(file, violations, console), console);
  }
  return violations.empty() ? ExitCode::Good : ExitCode::Failed;
}

}  // namespace stagecraft::tools
