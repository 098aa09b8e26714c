#include "stagecraft/tools/schedule/report/sweep_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/base/count_text.h"
#include "stagecraft/scheduler/render/escape.h"

namespace stagecraft::tools {
namespace {

// In pixels.
constexpr double kLeft = 56;
constexpr double kTop = 36;
constexpr double kWidth = 520;
constexpr double kHeight = 300;
constexpr double kLegendLine = 18;
constexpr double kKey = 34;         // the line of a legend's entry
constexpr double kCharacter = 7.7;  // the mean width in the widest usual font
constexpr double kBelow = 48;
constexpr double kLine = 2;
constexpr double kDash = 8;    // of curves that coincide
constexpr double kBeside = 7;  // between the marks of curves that coincide

/// People can tell them apart in print, and most color-blind people can (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 7> kColors{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#14181d"};
constexpr std::array<std::string_view, 4> kDashes{"none", "7 3", "2 3", "9 3 2 3"};

/// The outlines of marks around (0, 0): a disc, a square, a triangle up and one down, a diamond.
/// Their number has no divisor in common with that of the colors, so 35 curves differ.
constexpr std::array<std::string_view, 5> kMarks{"M4 0a4 4 0 1 1-8 0a4 4 0 1 1 8 0z",
                                                 "M3.5 3.5H-3.5V-3.5H3.5z",
                                                 "M0-4.6L4.4 3.4H-4.4z",
                                                 "M0 4.6L4.4-3.4H-4.4z",
                                                 "M0-5L5 0L0 5L-5 0z"};

/// Twins says how many curves have the points of one, and how many of them come before it.
struct Twins {
  int count = 1;
  int before = 0;
};

/// Converts values to places in the picture.
class Axes {
 public:
  explicit Axes(const std::vector<PlotLine>& lines) {
    double most = 0;
    for (const PlotLine& line : lines) {
      for (const auto& [microbatches, bubble] : line.points) {
        ticks_.insert(microbatches);
        most = std::max(most, bubble);
      }
    }
    step_ = most > 0.3 ? 0.1 : 0.05;
    top_ = std::max(step_, std::ceil(most / step_ - 1e-9) * step_);
  }

  [[nodiscard]] double x(int microbatches) const {
    const double from = std::log2(*ticks_.begin());
    const double to = std::log2(*ticks_.rbegin());
    return to > from ? kLeft + kWidth * (std::log2(microbatches) - from) / (to - from)
                     : kLeft + kWidth / 2;
  }
  [[nodiscard]] double y(double bubble) const { return kTop + kHeight * (1 - bubble / top_); }

  [[nodiscard]] std::string drawn() const {
    std::string text;
    for (double value = 0; value <= top_ + step_ / 2; value += step_) {
      text += fmt::format(
          "<line class='grid' x1='{}' x2='{}' y1='{:.1f}' y2='{:.1f}'/>"
          "<text class='y' x='{}' y='{:.1f}'>{:.0f}%</text>\n",
          kLeft,
          kLeft + kWidth,
          y(value),
          y(value),
          kLeft - 8,
          y(value) + 4,
          100 * value);
    }
    for (const int microbatches : ticks_) {
      text += fmt::format("<text class='x' x='{:.1f}' y='{}'>{}</text>\n",
                          x(microbatches),
                          kTop + kHeight + 18,
                          microbatches);
    }
    return text + fmt::format(
                      "<text class='x' x='{}' y='{}'>microbatches</text>\n"
                      "<text x='{}' y='20'>bubble, of all devices' time</text>\n",
                      kLeft + kWidth / 2,
                      kTop + kHeight + 38,
                      kLeft);
  }

 private:
  std::set<int> ticks_;
  double step_ = 0.1;
  double top_ = 0.1;
};

Twins twins_of(const std::vector<PlotLine>& lines, std::size_t number) {
  Twins twins{.count = 0};
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const bool same = lines[i].points == lines[number].points;
    twins.count += same ? 1 : 0;
    twins.before += same && i < number ? 1 : 0;
  }
  return twins;
}

std::string mark_at(double x, double y, std::size_t number, std::string_view title) {
  return fmt::format(
      "<path class='mark' transform='translate({:.1f} {:.1f})' d='{}' fill='{}'>{}</path>",
      x,
      y,
      kMarks[number % kMarks.size()],
      kColors[number % kColors.size()],
      title.empty() ? "" : fmt::format("<title>{}</title>", title));
}

/// Returns the look of a curve. Curves that coincide take turns along their line, one dash each.
std::string stroke_of(std::size_t number, const Twins& twins) {
  const std::string dashes =
      twins.count == 1 ? fmt::format("'{}'", kDashes[number / kColors.size() % kDashes.size()])
                       : fmt::format("'{0} {1}' stroke-dashoffset='{2}'",
                                     kDash,
                                     kDash * (twins.count - 1),
                                     kDash * (twins.count - twins.before));
  return fmt::format("stroke='{}' stroke-width='{}' stroke-dasharray={}",
                     kColors[number % kColors.size()],
                     kLine,
                     dashes);
}

/// Returns the curve and its entry in the legend.
std::string drawn(const PlotLine& line, std::size_t number, const Twins& twins, const Axes& axes) {
  const double beside = kBeside * (twins.before - (twins.count - 1) / 2.0);
  std::string places;
  std::string marks;
  for (const auto& [microbatches, bubble] : line.points) {
    const double x = axes.x(microbatches);
    const double y = axes.y(bubble);
    places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", x, y);
    marks += mark_at(x + beside,
                     y,
                     number,
                     fmt::format("{}: {}, {:.1f}%",
                                 drawing::escaped(line.name),
                                 count_text(microbatches, "microbatch"),
                                 100 * bubble));
  }
  const double legend_x = kLeft + kWidth + 20;
  const double legend_y = kTop + 8 + kLegendLine * static_cast<double>(number);
  return fmt::format(
      "<polyline {} points='{}'/>{}<line class='key' {} x1='{}' x2='{}' y1='{}' y2='{}'/>{}"
      "<text x='{}' y='{}'>{}</text>\n",
      stroke_of(number, twins),
      places,
      marks,
      stroke_of(number, {}),
      legend_x,
      legend_x + kKey - 8,
      legend_y,
      legend_y,
      mark_at(legend_x + (kKey - 8) / 2, legend_y, number, ""),
      legend_x + kKey,
      legend_y + 4,
      drawing::escaped(line.name));
}

}  // namespace

std::string plot_svg(const std::vector<PlotLine>& lines) {
  const Axes axes(lines);
  std::size_t longest = 0;
  for (const PlotLine& line : lines) {
    longest = std::max(longest, line.name.size());
  }
  const double width =
      std::ceil(kLeft + kWidth + 20 + kKey + kCharacter * static_cast<double>(longest) + 8);
  const double height =
      std::max(kTop + kHeight + kBelow, kTop + kLegendLine * static_cast<double>(lines.size() + 1));
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {} {}' width='{}' height='{}'>\n"
      "<style>text{{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#14181d}}.x{{text-anchor:"
      "middle}}.y{{text-anchor:end}}.grid{{stroke:#d5dae1}}polyline,.key{{fill:none}}.mark{{stroke:"
      "#fff;stroke-width:.5}}</"
      "style>\n<rect width='100%' height='100%' fill='#ffffff'/>\n{}",
      width,
      height,
      width,
      height,
      axes.drawn());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    text += drawn(lines[i], i, twins_of(lines, i), axes);
  }
  return text + "</svg>\n";
}

}  // namespace stagecraft::tools
