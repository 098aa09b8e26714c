#include "stagecraft/tools/trace/show.h"

#include <array>
#include <ostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/measured/measured_timeline.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/picture/picture_outputs.h"
#include "stagecraft/tools/trace/traced_run.h"

namespace stagecraft::tools {
namespace {

Timeline in_milliseconds(Timeline timeline) {
  constexpr double kMilliseconds = 1e3;
  timeline.makespan *= kMilliseconds;
  for (RowTimeline& row : timeline.rows) {
    row.busy *= kMilliseconds;
    row.idle *= kMilliseconds;
    for (EntryTime& entry : row.entries) {
      entry.start *= kMilliseconds;
      entry.end *= kMilliseconds;
    }
  }
  return timeline;
}

/// The ranks of a row run the same tasks, and the first is the measured one.
void note_other_ranks(const Schedule& schedule, Console& console) {
  const Layout layout = Layout::of(schedule);
  for (int row = 0; row < layout.rows(); ++row) {
    const auto ranks = layout.ranks_of(row);
    if (ranks.size() > 1) {
      std::vector<int> numbers;
      for (const Rank rank : ranks) {
        numbers.push_back(rank.value);
      }
      console.err << fmt::format(
          "note: d{} stands for ranks {}, which run the same tasks on their own samples; the "
          "picture shows rank {}\n",
          row,
          fmt::join(numbers, ", "),
          numbers.front());
    }
  }
}

}  // namespace

ExitCode show_trace(const std::vector<std::string>& words, Console& console) {
  std::string path;
  PictureOutputs outputs;
  CLI::App app("Draws a traced run below its plan, on one axis in milliseconds.",
               "stagecraft trace show");
  app.add_option("TRACE", path, "file that `stagecraft train --trace` wrote")
      ->required()
      ->type_name("FILE");
  add_picture_outputs(app, outputs, "name of the trace");
  app.footer(
      "The plan takes the costs of the run's --costs, or the mean times in the trace. The run "
      "shows the mean of its steps, the first left out. Both leave out the optimizer.\n"
      "Exit status: 0 drawn; 2 wrong usage, a file that cannot be read or is damaged, or output "
      "that cannot be written.\n"
      "Example: stagecraft trace show trace.json --svg run.svg --color-by kind");
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  PictureOptions picture = picture_options(app, outputs);
  if (!outputs.any()) {
    wrong_usage(app.get_name(), "expected a file for the picture, found none; add --svg FILE");
  }
  check_all_apart({{"TRACE", path}}, outputs.files());
  if (app.count("--title") == 0) {
    picture.title = path;
  }
  picture.time_name = "ms";
  const TracedRun run = read_run(path);
  note_other_ranks(run.schedule, console);
  const Schedule tasks = tasks_only(run.schedule);
  const StageGraph graph = tasks.stage_graph();
  const Timeline planned = in_milliseconds(timeline_of(tasks, graph, run.costs()));
  const Timeline measured = in_milliseconds(measured_timeline(tasks, run.measured));
  const std::string steps =
      fmt::format("measured, mean of {}", count_text(run.measured.steps(), "step"));
  write_pictures(std::array{Panel{&tasks, &graph, &planned, {}, "planned"},
                            Panel{&tasks, &graph, &measured, {}, steps}},
                 picture,
                 outputs,
                 console);
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
