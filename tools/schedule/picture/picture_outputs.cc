#include "stagecraft/tools/schedule/picture/picture_outputs.h"

#include <algorithm>
#include <optional>
#include <ostream>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/tikz.h"
#include "stagecraft/tools/common/command_line.h"
#include "stagecraft/tools/common/number.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/common/word_choice.h"
#include "stagecraft/tools/schedule/picture/converter.h"

namespace stagecraft::tools {
namespace {

constexpr double kPixelsPerInch = 96;
constexpr double kPixelsPerCm = kPixelsPerInch / 2.54;

/// Returns the pixels of "605", "8.4cm" or "3.25in"; nothing for other text.
std::optional<double> pixels_of(std::string_view text) {
  const auto number = leading_number(text);
  if (!number) {
    return std::nullopt;
  }
  const auto [value, unit] = *number;
  return unit.empty()   ? std::optional(value)
         : unit == "cm" ? std::optional(value * kPixelsPerCm)
         : unit == "in" ? std::optional(value * kPixelsPerInch)
                        : std::nullopt;
}

double width_of(const std::string& command, const std::string& text) {
  const std::optional<double> width = pixels_of(text);
  if (!width || *width < kNarrowestPicture || *width > kWidestPicture) {
    wrong_usage(command,
                fmt::format("--width expects {} to {} pixels, 96 to the inch, or a length such as "
                            "8.4cm or 3.25in ({:g}in at least), found '{}'",
                            kNarrowestPicture,
                            kWidestPicture,
                            kNarrowestPicture / kPixelsPerInch,
                            text));
  }
  return *width;
}

void refuse_one_file_twice(const std::string& command, const std::vector<NamedFile>& files) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (!files[i].second.empty() && files[i].second == files[j].second) {
        wrong_usage(command,
                    fmt::format("{} and {} expect two files, found '{}' twice",
                                files[j].first,
                                files[i].first,
                                files[i].second));
      }
    }
  }
}

/// Notes names that nobody can read on paper, where a picture has the size that the user gave.
void note_small_names(std::span<const Panel> panels,
                      const PictureOptions& options,
                      const PictureOutputs& outputs,
                      Console& console) {
  constexpr double kReadable = 5;  // points
  if (!options.width || !outputs.any_picture()) {
    return;
  }
  const std::optional<double> points = points_of_names(panels, options);
  if (points && *points < kReadable) {
    console.err << fmt::format(
        "note: at --width {} the names in the boxes are {:.1f} pt, smaller than {:g} pt; a larger "
        "--width makes them larger, --no-labels leaves them out\n",
        outputs.width,
        *points,
        kReadable);
  }
}

}  // namespace

bool PictureOutputs::any() const {
  return any_picture() || !html.empty();
}

bool PictureOutputs::any_picture() const {
  return !(svg.empty() && tikz.empty() && pdf.empty() && png.empty());
}

std::vector<NamedFile> PictureOutputs::files() const {
  return {{"--svg", svg}, {"--tikz", tikz}, {"--pdf", pdf}, {"--png", png}, {"--html", html}};
}

void add_picture_outputs(CLI::App& app, PictureOutputs& outputs, const std::string& usual_title) {
  const auto add_file = [&](const char* name, std::string& file, const char* meaning) {
    app.add_option(name, file, meaning)->type_name("FILE");
  };
  add_file("--svg", outputs.svg, "write an SVG picture");
  add_file("--tikz", outputs.tikz, "write the picture as TikZ, for a paper");
  add_file("--pdf", outputs.pdf, "write the picture as PDF, with a program that converts SVG");
  add_file("--png", outputs.png, "write the picture as PNG, in the same way");
  app.add_option(
         "--title", outputs.title, fmt::format("title; \"\" leaves it out [{}]", usual_title))
      ->type_name("TEXT");
  app.add_option("--color-by",
                 outputs.color_by,
                 "what colors show: stage, kind, chunk (which of a device's stages) or "
                 "microbatch [stage]")
      ->type_name("stage|kind|chunk|microbatch");
  app.add_option(
         "--width",
         outputs.width,
         "width of the picture in pixels, 96 to the inch, or with a unit: 8.4cm, 3.25in [as "
         "names need; of TikZ: 12cm]")
      ->type_name("WIDTH");
  app.add_flag("--no-legend", outputs.no_legend, "leave out the legend and its notes");
  app.add_flag("--no-idle", outputs.no_idle, "leave out the idle shares behind the rows");
  app.add_flag("--no-labels", outputs.no_labels, "leave out the names in the boxes");
}

PictureOptions picture_options(const CLI::App& app, const PictureOutputs& outputs) {
  refuse_one_file_twice(app.get_name(), outputs.files());
  for (const char* option :
       {"--title", "--color-by", "--width", "--no-legend", "--no-idle", "--no-labels"}) {
    const bool has_effect =
        option == std::string_view("--title") ? outputs.any() : outputs.any_picture();
    if (app.count(option) > 0 && !has_effect) {
      wrong_usage(
          app.get_name(),
          fmt::format("{} applies to pictures; add --svg, --pdf, --png or --tikz FILE", option));
    }
  }
  PictureOptions options{.title = outputs.title,
                         .legend = !outputs.no_legend,
                         .idle = !outputs.no_idle,
                         .names = !outputs.no_labels};
  std::vector<std::pair<std::string, ColorBy>> words;
  for (const ColorBy by : kColorBys) {
    words.emplace_back(name(by), by);
  }
  options.color_by = choose(app.get_name(), "--color-by", outputs.color_by, words);
  if (app.count("--width") > 0) {
    options.width = width_of(app.get_name(), outputs.width);
  }
  return options;
}

void write_pictures(std::span<const Panel> panels,
                    const PictureOptions& options,
                    const PictureOutputs& outputs,
                    Console& console) {
  note_small_names(panels, options, outputs, console);
  if (!outputs.tikz.empty()) {
    write_output(outputs.tikz, render_tikz(panels, options), console);
  }
  if (outputs.svg.empty() && outputs.pdf.empty() && outputs.png.empty()) {
    return;
  }
  const std::string svg = render_svg(panels, options);
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

}  // namespace stagecraft::tools
