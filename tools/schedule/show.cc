/// `stagecraft schedule show`
#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/costs/cut_costs.h"
#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tools/common/color_option.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/files_apart.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/picture/picture_outputs.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

struct Drawing {
  ScheduleFile file;
  std::vector<Violation> violations;
  std::string name;                  ///< among several schedules
  std::optional<Timeline> timeline;  ///< of a valid schedule
};

/// Draws a valid list in columns, which show its bubbles.
Drawing drawing_of(ScheduleFile file) {
  Drawing drawing{std::move(file), {}, {}, {}};
  drawing.violations = violations_of(drawing.file);
  const bool list = drawing.file.schedule.form() == Schedule::Form::List;
  if (list && drawing.violations.empty() && fits_array(drawing.file.schedule, drawing.file.graph)) {
    drawing.file.schedule = to_array(drawing.file.schedule, drawing.file.graph);
  }
  return drawing;
}

/// Returns the names of files without their folders and endings if these differ, else the paths.
std::vector<std::string> names_of(const std::vector<std::string>& paths) {
  std::vector<std::string> names;
  for (const std::string& path : paths) {
    names.push_back(path == "-" ? "standard input" : std::filesystem::path(path).stem().string());
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (std::ranges::count(names, names[i]) > 1) {
      return paths;
    }
  }
  return names;
}

std::string grids_of(const std::vector<Drawing>& drawings, const Console& console) {
  std::string text;
  for (const Drawing& drawing : drawings) {
    if (drawings.size() > 1) {
      text += fmt::format("{}{}\n", text.empty() ? "" : "\n", drawing.name);
    }
    text += report_text(drawing.file, drawing.violations, console);
  }
  return text;
}

/// Gives every valid schedule its times. Several schedules do the work of one model, so the stages
/// of each are its equal shares, as in `compare`.
void simulate_all(std::vector<Drawing>& drawings, const Costs& costs) {
  for (Drawing& drawing : drawings) {
    const Schedule& schedule = drawing.file.schedule;
    const StageGraph& graph = drawing.file.graph;
    if (drawings.size() > 1) {
      require_valid(drawing.file);  // rows without times have no place on the axis
      const auto devices = static_cast<int>(schedule.rows().size());
      drawing.timeline =
          timeline_of(schedule, graph, cut_costs(costs, stages_of(costs, devices), graph));
    } else if (drawing.violations.empty()) {
      drawing.timeline = timeline_of(schedule, graph, costs);
    }
  }
}

std::vector<Panel> panels_of(const std::vector<Drawing>& drawings) {
  std::vector<Panel> panels;
  for (const Drawing& drawing : drawings) {
    panels.push_back({.schedule = &drawing.file.schedule,
                      .graph = &drawing.file.graph,
                      .timeline = drawing.timeline ? &*drawing.timeline : nullptr,
                      .violations = drawing.violations,
                      .name = drawings.size() > 1 ? drawing.name : std::string()});
  }
  return panels;
}

std::string html_of(const Panel& panel, const std::string& title) {
  return render_html(*panel.schedule,
                     *panel.graph,
                     panel.timeline,
                     {panel.violations.begin(), panel.violations.end()},
                     title);
}

}  // namespace

ExitCode show_schedule(const Words& words, Console& console) {
  std::vector<std::string> paths;
  ReadOptions read;
  PictureOutputs outputs;
  CostOptions cost_options;
  CLI::App app("Draws schedules and marks their faults.", "stagecraft schedule show");
  app.footer(
      "In the terminal, color shows the stage. A picture or the page is written instead of the "
      "grid. Durations and costs apply to both, which draw a valid schedule in time. A picture of "
      "several schedules draws them one above the other on one axis; their times are those of "
      "compare.\n"
      "Exit status: 0 drawn, with any faults; 1 one of several schedules for a picture breaks a "
      "rule; 2 wrong usage, a file that cannot be read, or output that cannot be written.\n"
      "Example: stagecraft schedule show 1f1b.txt zb-v.txt --pdf both.pdf --color-by kind");
  app.add_option("FILES", paths, "schedule files, with --html only one; - is standard input")
      ->required()
      ->type_name("");
  add_read_options(app, read);
  add_cost_options(app, cost_options);
  add_picture_outputs(app, outputs, "size of the schedule; of several: none");
  app.add_option("--html", outputs.html, "write a page for a browser")->type_name("FILE");
  add_color_option(app, console);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  if (paths.size() > 1 && !outputs.html.empty()) {
    wrong_usage(
        app.get_name(),
        fmt::format("--html expects one schedule, found {}; --svg, --pdf, --png and --tikz draw "
                    "several",
                    paths.size()));
  }
  PictureOptions picture = picture_options(app, outputs);
  std::vector<NamedFile> inputs = files_read("", read);
  inputs.emplace_back("--costs", cost_options.file);
  for (const std::string& path : paths) {
    inputs.emplace_back("FILES", path);
  }
  check_all_apart(inputs, outputs.files());
  std::vector<Drawing> drawings;
  const std::vector<std::string> names = names_of(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    drawings.push_back(drawing_of(read_schedule(paths[i], read, console)));
    drawings.back().name = names[i];
  }
  const Costs costs = costs_of(app, cost_options, console);
  if (!outputs.any()) {
    write_output("", grids_of(drawings, console), console);
    return ExitCode::Good;
  }
  simulate_all(drawings, costs);
  const std::vector<Panel> panels = panels_of(drawings);
  if (app.count("--title") == 0 && panels.size() == 1) {
    picture.title = size_text(drawings.front().file);
  }
  write_pictures(panels, picture, outputs, console);
  if (!outputs.html.empty()) {
    const std::string name = paths.front() == "-" ? "Schedule" : paths.front();
    const std::string& title = app.count("--title") > 0 ? outputs.title : name;
    write_output(outputs.html, html_of(panels.front(), title), console);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
