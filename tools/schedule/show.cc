/// `stagecraft schedule show`
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/render/html/html.h"
#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/tikz.h"
#include "stagecraft/scheduler/simulate/to_array.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/schedule/commands.h"
#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/input/input.h"
#include "stagecraft/tools/schedule/report/converter.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

struct Drawing {
  ScheduleFile file;
  std::vector<Violation> violations;
  std::optional<Timeline> timeline;  ///< of a valid schedule
};

/// Draws a valid list in columns, which show its bubbles.
Drawing drawing_of(ScheduleFile file) {
  Drawing drawing{std::move(file), {}, {}};
  drawing.violations = violations_of(drawing.file);
  const bool list = drawing.file.schedule.form() == Schedule::Form::List;
  if (list && drawing.violations.empty() && fits_array(drawing.file.schedule, drawing.file.graph)) {
    drawing.file.schedule = to_array(drawing.file.schedule, drawing.file.graph);
  }
  return drawing;
}

/// The outputs that replace the grid in the terminal.
struct Outputs {
  std::string svg;
  std::string tikz;
  std::string pdf;
  std::string png;
  std::string html;
  std::string title;
  std::string color_by = "stage";
  double width = 0;

  [[nodiscard]] std::vector<std::pair<const char*, const std::string*>> files() const {
    return {
        {"--svg", &svg}, {"--tikz", &tikz}, {"--pdf", &pdf}, {"--png", &png}, {"--html", &html}};
  }
  [[nodiscard]] bool any() const {
    return std::ranges::any_of(files(), [](const auto& file) { return !file.second->empty(); });
  }
};

void add_outputs(CLI::App& app, Outputs& outputs) {
  const auto add_file = [&](const char* name, std::string& file, const char* meaning) {
    app.add_option(name, file, meaning)->type_name("FILE");
  };
  add_file("--svg", outputs.svg, "write an SVG picture instead of the grid");
  add_file("--tikz", outputs.tikz, "write the picture as TikZ for a paper, 12 cm wide");
  add_file("--pdf", outputs.pdf, "write the picture as PDF, with a program that converts SVG");
  add_file("--png", outputs.png, "write the picture as PNG, in the same way");
  add_file("--html", outputs.html, "write a page for a browser instead of the grid");
  app.add_option("--title", outputs.title, "the title of picture and page [of a picture: its size]")
      ->type_name("TEXT");
  app.add_option("--color-by",
                 outputs.color_by,
                 "what a picture's colors show: stage, kind, chunk (which of a device's stages) or "
                 "microbatch [stage]")
      ->type_name("WHAT");
  app.add_option("--width",
                 outputs.width,
                 "the width of a picture in pixels, 96 to the inch [as names need]")
      ->check(positive_number())
      ->type_name("PIXELS");
}

/// Errors: UsageArgument for two outputs in one file, and for picture options without effect.
PictureOptions picture_options(const CLI::App& app, const Outputs& outputs) {
  const auto files = outputs.files();
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!files[i].second->empty() && *files[i].second == *files[j].second) {
        wrong_usage(app.get_name(),
                    fmt::format("{} and {} expect two files, found '{}' twice",
                                files[j].first,
                                files[i].first,
                                *files[i].second));
      }
    }
  }
  for (const char* option : {"--title", "--color-by", "--width"}) {
    if (app.count(option) > 0 && !outputs.any()) {
      wrong_usage(app.get_name(), fmt::format("{} applies to pictures; add --svg FILE", option));
    }
  }
  PictureOptions options{.title = outputs.title};
  std::vector<std::pair<std::string, ColorBy>> words;
  for (const ColorBy by : kColorBys) {
    words.emplace_back(name(by), by);
  }
  options.color_by = choose(app.get_name(), "--color-by", outputs.color_by, words);
  if (app.count("--width") > 0) {
    if (outputs.width < kNarrowestPicture || outputs.width > kWidestPicture) {
      wrong_usage(app.get_name(),
                  fmt::format("--width expects {} to {} pixels, found {:g}; a page of A4 with "
                              "margins of 2.5 cm has 605",
                              kNarrowestPicture,
                              kWidestPicture,
                              outputs.width));
    }
    options.width = outputs.width;
  }
  return options;
}

/// `render`: render_svg or render_tikz.
template <class Render>
std::string picture_of(const Drawing& drawing, const PictureOptions& options, Render render) {
  return render(drawing.file.schedule,
                drawing.file.graph,
                drawing.timeline ? &*drawing.timeline : nullptr,
                drawing.violations,
                options);
}

void write_pictures(const Drawing& drawing,
                    PictureOptions options,
                    const Outputs& outputs,
                    Console& console) {
  if (options.title.empty()) {
    options.title = size_text(drawing.file);
  }
  if (!outputs.tikz.empty()) {
    write_output(outputs.tikz, picture_of(drawing, options, render_tikz), console);
  }
  if (outputs.svg.empty() && outputs.pdf.empty() && outputs.png.empty()) {
    return;
  }
  const std::string svg = picture_of(drawing, options, render_svg);
  if (!outputs.svg.empty()) {
    write_output(outputs.svg, svg, console);
  }
  if (!outputs.pdf.empty()) {
    write_output(outputs.pdf, convert_svg(svg, PictureFormat::Pdf), console);
  }
  if (!outputs.png.empty()) {
    write_output(outputs.png, convert_svg(svg, PictureFormat::Png), console);
  }
}

std::string html_of(const Drawing& drawing, const std::string& title) {
  return render_html(drawing.file.schedule,
                     drawing.file.graph,
                     drawing.timeline ? &*drawing.timeline : nullptr,
                     drawing.violations,
                     title);
}

}  // namespace

ExitCode show_schedule(const Words& words, Console& console) {
  std::string path;
  ReadOptions read;
  Outputs outputs;
  CostOptions cost_options;
  CLI::App app("Draws a schedule and marks its faults.", "stagecraft schedule show");
  app.footer(
      "In the terminal, color shows the stage; NO_COLOR turns it off. Durations and costs apply to "
      "pictures and the page, which draw a valid schedule in time.");
  add_file_argument(app, path);
  add_outputs(app, outputs);
  add_cost_options(app, cost_options);
  add_read_options(app, read);
  if (const auto help = parse_command_line(app, words)) {
    write_output("", *help, console);
    return ExitCode::Good;
  }
  const PictureOptions picture = picture_options(app, outputs);
  Drawing drawing = drawing_of(read_schedule(path, read, console));
  const Costs costs = costs_of(app, cost_options, console);
  if (!outputs.any()) {
    write_output("", report_text(drawing.file, drawing.violations, console), console);
    return ExitCode::Good;
  }
  if (drawing.violations.empty()) {
    drawing.timeline = timeline_of(drawing.file.schedule, drawing.file.graph, costs);
  }
  write_pictures(drawing, picture, outputs, console);
  if (!outputs.html.empty()) {
    const std::string name = path == "-" ? "Schedule" : path;
    write_output(
        outputs.html, html_of(drawing, outputs.title.empty() ? name : outputs.title), console);
  }
  return ExitCode::Good;
}

}  // namespace stagecraft::tools
