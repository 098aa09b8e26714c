#include "stagecraft/scheduler/render/tikz.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/render/figure.h"

namespace stagecraft {
namespace {

using drawing::Box;
using drawing::Figure;
using drawing::kLine;
using drawing::kMargin;

constexpr std::size_t kMaxListedCells = 20;

/// Converts pixels to cm.
std::string cm(double pixels) {
  return fmt::format("{:.3f}", pixels * 2.54 / 96);
}

std::string at(double x, double y) {
  return fmt::format("({},{})", cm(x), cm(y));
}

/// Escapes the text for TeX.
std::string tex(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\textbackslash{}";
    } else if (c == '~' || c == '^') {
      out += fmt::format("\\{}{{}}", c);
    } else if (std::string_view("{}$&#_%").find(c) != std::string_view::npos) {
      out += fmt::format("\\{}", c);
    } else {
      out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

std::string in_one_line(std::string words) {
  std::ranges::replace(words, '\n', ' ');
  return words;
}

class TikzPicture {
 public:
  TikzPicture(std::span<const Panel> panels, const PictureOptions& options)
      : panels_(panels), figure_(panels, options) {}

  [[nodiscard]] std::string draw() {
    std::string drawn;  // in sequence, because each part may define colors
    for (std::size_t panel = 0; panel < panels_.size(); ++panel) {
      drawn += draw_rows(panel);
    }
    drawn += draw_axis();
    drawn += draw_boxes();
    drawn += draw_marks();
    for (std::size_t panel = 0; panel < panels_.size(); ++panel) {
      drawn += draw_cycle(panel);
    }
    drawn += draw_texts();
    return head() +
           "\\begin{tikzpicture}[x=1cm,y=-1cm,line width=0.4pt,"
           "every node/.style={inner sep=0pt,outer sep=0pt}]\n" +
           definitions() +
           fmt::format("\\useasboundingbox (0,0) rectangle {};\n", at(figure_.width, height())) +
           drawn + "\\end{tikzpicture}%\n";
  }

 private:
  [[nodiscard]] double height() const {
    return figure_.bottom() + kMargin +
           kLine * static_cast<double>(figure_.legend_lines() + figure_.notes.size());
  }

  /// Returns the name of a color, which the start of the picture defines.
  std::string color(const std::string& hex) {
    return colors_.try_emplace(hex, fmt::format("stagecraft{}", colors_.size())).first->second;
  }

  [[nodiscard]] std::string definitions() const {
    std::map<std::string, std::string> by_name;
    for (const auto& [hex, name] : colors_) {
      by_name[name] = hex;
    }
    std::string text;
    for (const auto& [name, hex] : by_name) {
      std::string digits = hex.substr(1);
      std::ranges::transform(
          digits, digits.begin(), [](unsigned char c) { return std::toupper(c); });
      text += fmt::format("\\definecolor{{{}}}{{HTML}}{{{}}}\n", name, digits);
    }
    return text;
  }

  /// `anchor`: the point of the text at x and y: left, middle or right of the baseline.
  std::string text(double x,
                   double y,
                   std::string_view words,
                   std::string_view anchor,
                   double size = drawing::kTextSize,
                   const std::string& hex = "#14181d") {
    const double points = size * 0.75;
    return fmt::format(
        "\\node[anchor={},text={},font=\\sffamily\\fontsize{{{:.2f}}}{{{:.2f}}}\\selectfont] at {} "
        "{{{}}};\n",
        anchor,
        color(hex),
        points,
        points * 1.2,
        at(x, y),
        tex(words));
  }

  std::string fill(double x, double y, double wide, double high, const std::string& hex) {
    return fmt::format(
        "\\fill[{}] {} rectangle {};\n", color(hex), at(x, y), at(x + wide, y + high));
  }

  std::string outline(
      double x, double y, double wide, double high, const std::string& hex, std::string_view look) {
    return fmt::format(
        "\\draw[{}{}] {} rectangle {};\n", color(hex), look, at(x, y), at(x + wide, y + high));
  }

  [[nodiscard]] std::string head() const;
  std::string draw_rows(std::size_t panel);
  std::string draw_axis();
  std::string draw_boxes();
  std::string draw_marks();
  std::string draw_cycle(std::size_t panel);
  std::string draw_texts();

  std::span<const Panel> panels_;
  Figure figure_;
  std::map<std::string, std::string> colors_;  ///< "#rrggbb" -> its name
};

constexpr const char* kGray = "#5c6773";

std::string TikzPicture::head() const {
  std::string text;
  for (const Panel& panel : panels_) {
    text += fmt::format("% {}{}A schedule of {} rows, {} stages and {} microbatches.\n",
                        in_one_line(panel.name),
                        panel.name.empty() ? "" : ": ",
                        panel.schedule->rows().size(),
                        panel.schedule->stages(),
                        panel.schedule->microbatches());
  }
  text += fmt::format(
      "% Drawn by stagecraft; {} cm wide.\n"
      "% Needs \\usepackage{{tikz}}. \\input this file where the picture is to be.\n",
      cm(figure_.width));
  for (const Panel& panel : panels_) {
    for (const Violation& v :
         panel.violations.first(std::min(panel.violations.size(), kMaxListedCells))) {
      text += "% " + in_one_line(to_string(v)) + '\n';
    }
  }
  return text;
}

/// Draws a panel's name and rows, without their boxes.
std::string TikzPicture::draw_rows(std::size_t panel) {
  const Panel& drawn = panels_[panel];
  std::string text_of_rows;
  if (!drawn.name.empty()) {
    const drawing::Band& band = figure_.bands[panel];
    text_of_rows += text(kMargin, band.heading, band.name, "base west");
  }
  for (std::size_t row = 0; row < drawn.schedule->rows().size(); ++row) {
    const double top = figure_.y(panel, row);
    const double middle = top + figure_.row_height / 2 + 4;
    text_of_rows += fill(figure_.x(0),
                         top + 2,
                         figure_.bands[panel].length,
                         figure_.row_height - 4,
                         std::string(drawing::kIdleColor));
    text_of_rows += text(figure_.left - kMargin,
                         middle,
                         row_name(*drawn.schedule, row),
                         "base east",
                         drawing::kTextSize,
                         kGray);
    if (figure_.idle) {
      text_of_rows += text(figure_.x(figure_.length) + figure_.room_behind + 8,
                           middle,
                           fmt::format("{:.1f}% idle", 100 * drawn.timeline->bubble_fraction(row)),
                           "base west");
    }
  }
  return text_of_rows;
}

std::string TikzPicture::draw_axis() {
  const double base = figure_.axis;
  const std::string gray = color(kGray);
  std::string drawn = fmt::format(
      "\\draw[{}] {} -- {};\n", gray, at(figure_.x(0), base), at(figure_.x(figure_.length), base));
  drawn += text(
      figure_.left - kMargin, base - 8, figure_.axis_name, "base east", drawing::kTextSize, kGray);
  for (const drawing::Tick& tick : figure_.ticks) {
    const double x = figure_.x(tick.at) + (figure_.timed ? 0 : figure_.scale / 2);
    drawn += fmt::format("\\draw[{}] {} -- {};\n", gray, at(x, base - 4), at(x, base));
    drawn += text(x, base - 8, tick.label, "base", drawing::kTextSize, kGray);
    if (!figure_.timed) {
      continue;
    }
    for (const drawing::Band& band : figure_.bands) {
      drawn += fmt::format("\\draw[{}] {} -- {};\n",
                           color("#d5dae1"),
                           at(x, band.top - 2),
                           at(x, std::max(band.bottom, band.top - 2)));
    }
  }
  return drawn;
}

std::string TikzPicture::draw_boxes() {
  std::string drawn;
  for (const Box& box : figure_.boxes) {
    const double x = figure_.left_of(box);
    const double y = figure_.top_of(box);
    const double wide = figure_.width_of(box);
    const double high = figure_.height_of(box);
    drawn +=
        box.surplus
            ? outline(x, y, wide, high, kGray, ",dashed")
            : fill(x, y, wide, high, figure_.colors.of(box.task, ColorScheme::Light, box.panel));
    if (const std::string name = figure_.name_in(box); !name.empty()) {
      drawn += text(x + wide / 2,
                    y + high / 2 + 0.36 * figure_.name_size,
                    name,
                    "base",
                    figure_.name_size,
                    box.surplus ? kGray : "#14181d");
    }
    if (box.member + 1 == box.cell->tasks().size() && box.member > 0) {
      drawn += outline(
          x, figure_.y(box.panel, box.row) + 2, wide, figure_.row_height - 4, "#14181d", "");
    }
  }
  return drawn;
}

/// Draws above all boxes, so that no neighbor hides a frame.
std::string TikzPicture::draw_marks() {
  std::string drawn;
  for (const Box& box : figure_.marked()) {
    drawn += outline(figure_.left_of(box),
                     figure_.y(box.panel, box.row) + 2,
                     figure_.width_of(box),
                     figure_.row_height - 4,
                     "#d3122a",
                     ",line width=1.5pt");
  }
  return drawn;
}

/// TeX draws cubic curves: their control points lie two thirds of the way to that of the quadratic
/// curve.
std::string TikzPicture::draw_cycle(std::size_t panel) {
  std::string drawn;
  for (const drawing::Arrow& arrow : figure_.arrows(panel)) {
    const auto bend = [&](const drawing::Point& end) {
      return at(end.x + (arrow.bow.x - end.x) * 2 / 3, end.y + (arrow.bow.y - end.y) * 2 / 3);
    };
    drawn += fmt::format("\\draw[{},line width=1.5pt,-stealth] {} .. controls {} and {} .. {};\n",
                         color("#d3122a"),
                         at(arrow.from.x, arrow.from.y),
                         bend(arrow.from),
                         bend(arrow.to),
                         at(arrow.to.x, arrow.to.y));
  }
  return drawn;
}

/// Draws title, legend and notes.
std::string TikzPicture::draw_texts() {
  std::string drawn;
  double line = 2;
  for (const std::string& words : figure_.title) {
    line += drawing::kTitleGrowth * kLine;
    drawn += text(kMargin, line, words, "base west", drawing::kTitleGrowth * drawing::kTextSize);
  }
  for (const drawing::LegendItem& item : figure_.legend) {
    line = figure_.bottom() + kLine * static_cast<double>(item.line + 1) + 2;
    for (std::size_t i = 0; i < item.colors.size(); ++i) {
      drawn += fill(item.x + drawing::kSwatch * static_cast<double>(i),
                    line - 9.5,
                    drawing::kSwatch,
                    drawing::kSwatch,
                    item.colors[i]);
    }
    drawn += text(item.text_x(), line, item.text, "base west");
  }
  line = figure_.bottom() + kLine * static_cast<double>(figure_.legend_lines()) + 2;
  for (const std::string& words : figure_.notes) {
    line += kLine;
    drawn += text(kMargin, line, words, "base west", drawing::kTextSize, kGray);
  }
  return drawn;
}

}  // namespace

std::string render_tikz(std::span<const Panel> panels, const PictureOptions& options) {
  PictureOptions sized = options;
  sized.width = options.width.value_or(kTikzWidth);
  return TikzPicture(panels, sized).draw();
}

std::string render_tikz(const Schedule& schedule,
                        const StageGraph& graph,
                        const Timeline* timeline,
                        const std::vector<Violation>& violations,
                        const PictureOptions& options) {
  return render_tikz(std::array{Panel{&schedule, &graph, timeline, violations}}, options);
}

}  // namespace stagecraft
