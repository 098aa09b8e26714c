/// `stagecraft schedule simulate`
#include "stagecraft/scheduler/simulate/simulate.h"

#include <cmath>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "stagecraft/scheduler/model/hash.h"
#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/tools/common/command_json.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number_text.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/surplus_json.h"
#include "stagecraft/tools/schedule/report/timeline_json.h"
#include "stagecraft/tools/schedule/report/timeline_text.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

using Json = nlohmann::ordered_json;

/// `bytes`: the costs know the bytes that are held.
std::string as_json(const ScheduleFile& file, const Timeline& timeline, bool bytes) {
  Json idle = Json::array();
  Json span_idle = Json::array();
  Json bubble = Json::array();
  Json peak = Json::array();
  Json peak_bytes = Json::array();
  for (std::size_t r = 0; r < timeline.rows.size(); ++r) {
    idle.push_back(number_json(timeline.rows[r].idle));
    span_idle.push_back(number_json(timeline.rows[r].span_idle));
    bubble.push_back(number_json(timeline.bubble_fraction(r)));
    peak.push_back(timeline.rows[r].peak_in_flight);
    peak_bytes.push_back(number_json(timeline.rows[r].peak_bytes));
  }
  const Timeline unit = simulate(file.schedule, file.graph, Costs::unit());
  Json answer{{"devices", file.schedule.rows().size()},
              {"stages", file.graph.size()},
              {"microbatches", file.schedule.microbatches()},
              {"columns", std::llround(unit.makespan)},
              {"makespan", number_json(timeline.makespan)},
              {"idle", idle},
              {"span_idle", span_idle},
              {"bubble_fraction", bubble},
              {"peak_in_flight", peak},
              {"replicas", file.graph.replicas()},
              {"hash", fmt::format("{:016x}", schedule_hash(file.schedule))},
              {"causes", causes_json(timeline)},
              {"largest_bubbles", bubbles_json(timeline)},
              {"critical_path", path_json(timeline)}};
  if (bytes) {
    answer["peak_bytes"] = peak_bytes;
  }
  if (const std::vector<int> sizes = file.graph.microbatch_sizes(); !sizes.empty()) {
    answer["sizes"] = sizes;
  }
  if (const std::vector<Surplus> surplus = find_surplus(file.schedule, file.graph);
      !surplus.empty()) {
    answer["surplus"] = surplus_json(surplus);
  }
  return command_json("schedule simulate", answer);
}

std::string as_text(const ScheduleFile& file,
                    const TimelineTextOptions& options,
                    const Timeline& timeline) {
  const std::vector<Surplus> surplus = find_surplus(file.schedule, file.graph);
  return size_text(file) + '\n' + (surplus.empty() ? "" : to_string(surplus, file.graph) + '\n') +
         timeline_text(timeline, options);
}

}  // namespace

ExitCode simulate_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  CostOptions options;
  bool json = false;
  CLI::App app("Computes the time of a schedule, and the work and the waits of each device.",
               "stagecraft schedule simulate");
  app.footer(
      "Durations can have any unit; results have the same.\n"
      "Exit status: 0 computed; 1 the schedule breaks a rule; 2 wrong usage, or a file that cannot "
      "be read.\n"
      "Example: stagecraft schedule simulate plan.txt --f 1 --b 2 --latency 0.1");
  add_file_argument(app, path);
  add_read_options(app, read);
  add_cost_options(app, options);
  app.add_flag("--json", json, "print one JSON object");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const ScheduleFile file = read_schedule(path, read, console);
  const Costs costs = costs_of(app, options, console);
  require_valid(file);
  note_misfit(options.file, costs, file.schedule, file.graph, console);
  const Timeline timeline = timeline_of(file.schedule, file.graph, costs);
  write_output(
      "",
      json ? as_json(file, timeline, knows_memory(costs))
           : as_text(file, {.width = console.width, .bytes = knows_memory(costs)}, timeline),
      console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
