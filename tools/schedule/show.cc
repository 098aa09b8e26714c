/// `stagecraft schedule show`
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/render/html.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/tools/command_line.h"
#include "stagecraft/tools/output.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/cost_options.h"
#include "stagecraft/tools/schedule/format.h"
#include "stagecraft/tools/schedule/input.h"
#include "stagecraft/tools/schedule/verdict.h"

namespace stagecraft::tools {
namespace {

struct Drawing {
  ScheduleFile file;
  std::vector<Violation> violations;
};

/// A valid list is drawn in columns, where its bubbles can be seen.
Drawing drawing_of(ScheduleFile file) {
  Drawing drawing{std::move(file), {}};
  drawing.violations = violations_of(drawing.file);
  const bool list = drawing.file.schedule.form() == Schedule::Form::List;
  if (list && drawing.violations.empty() && fits_array(drawing.file.schedule, drawing.file.graph)) {
    drawing.file.schedule = drawing.file.schedule.to_array(drawing.file.graph);
  }
  return drawing;
}

std::string html_of(const Drawing& drawing, const Costs& costs, const std::string& path) {
  const ScheduleFile& file = drawing.file;
  std::optional<Timeline> timeline;
  if (drawing.violations.empty()) {
    timeline = timeline_of(file.schedule, file.graph, costs);
  }
  return render_html(file.schedule,
                     file.graph,
                     timeline ? &*timeline : nullptr,
                     drawing.violations,
                     path == "-" ? "Schedule" : path);
}

}  // namespace

ExitCode show_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  std::string svg;
  std::string html;
  CostOptions options;
  CLI::App app("Draws a schedule, with what is wrong marked on it.", "stagecraft schedule show");
  app.footer(
      "Colour says the stage; it is left out where NO_COLOR is set. Durations and costs are for "
      "the page.");
  add_file_argument(app, path);
  app.add_option("--svg", svg, "write a picture instead")->type_name("FILE");
  app.add_option("--html", html, "write a page instead, to look around in with a browser")
      ->type_name("FILE");
  add_cost_options(app, options);
  add_read_options(app, read);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  if (!svg.empty() && svg == html) {
    wrong_usage(app.get_name(),
                fmt::format("--svg and --html expect two files, found '{}' twice", svg));
  }
  const Drawing drawing = drawing_of(read_schedule(path, read, console));
  const Costs costs = costs_of(app, options, console);
  if (!svg.empty()) {
    const ScheduleFile& file = drawing.file;
    write_output(svg, render_svg(file.schedule, file.graph, nullptr, drawing.violations), console);
  }
  if (!html.empty()) {
    write_output(html, html_of(drawing, costs, path), console);
  }
  if (svg.empty() && html.empty()) {
    write_output("", report_text(drawing.file, drawing.violations, console), console);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
