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
constexpr double kLegend = 190;
constexpr double kLegendLine = 18;
constexpr double kBelow = 48;
constexpr double kLine = 2;
constexpr double kMark = 3;  // the radius
constexpr double kBroader = 3;

/// People can tell them apart in print, and most color-blind people can (Okabe and Ito, 2008).
constexpr std::array<std::string_view, 7> kColors{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#14181d"};
constexpr std::array<std::string_view, 4> kDashes{"none", "7 3", "2 3", "9 3 2 3"};

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

/// `above`: number of curves drawn over this one, which is made broader by that many steps.
std::string drawn(const PlotLine& line,
                  std::size_t number,
                  std::ptrdiff_t above,
                  const Axes& axes) {
  const std::string_view color = kColors[number % kColors.size()];
  const auto broader = static_cast<double>(above);
  const std::string style = fmt::format("stroke='{}' stroke-width='{}' stroke-dasharray='{}'",
                                        color,
                                        kLine + kBroader * broader,
                                        kDashes[number / kColors.size() % kDashes.size()]);
  std::string places;
  std::string marks;
  for (const auto& [microbatches, bubble] : line.points) {
    const double x = axes.x(microbatches);
    const double y = axes.y(bubble);
    places += fmt::format("{}{:.1f},{:.1f}", places.empty() ? "" : " ", x, y);
    marks += fmt::format(
        "<circle cx='{:.1f}' cy='{:.1f}' r='{:.1f}' fill='{}'><title>{}: {}, "
        "{:.1f}%</title></circle>",
        x,
        y,
        kMark + kBroader / 2 * broader,
        color,
        drawing::escaped(line.name),
        count_text(microbatches, "microbatch"),
        100 * bubble);
  }
  const double legend_x = kLeft + kWidth + 20;
  const double legend_y = kTop + 8 + kLegendLine * static_cast<double>(number);
  return fmt::format(
      "<polyline {} points='{}'/>{}<line class='key' {} x1='{}' x2='{}' y1='{}' y2='{}'/>"
      "<text x='{}' y='{}'>{}</text>\n",
      style,
      places,
      marks,
      style,
      legend_x,
      legend_x + 26,
      legend_y,
      legend_y,
      legend_x + 34,
      legend_y + 4,
      drawing::escaped(line.name));
}

}  // namespace

std::string plot_svg(const std::vector<PlotLine>& lines) {
  const Axes axes(lines);
  const double width = kLeft + kWidth + 20 + kLegend;
  const double height =
      std::max(kTop + kHeight + kBelow, kTop + kLegendLine * static_cast<double>(lines.size() + 1));
  std::string text = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {} {}' width='{}' height='{}'>\n"
      "<style>text{{font:12px 'DejaVu Sans',Verdana,sans-serif;fill:#14181d}}.x{{text-anchor:"
      "middle}}.y{{text-anchor:end}}.grid{{stroke:#d5dae1}}polyline,.key{{fill:none}}</"
      "style>\n<rect width='100%' height='100%' fill='#ffffff'/>\n{}",
      width,
      height,
      width,
      height,
      axes.drawn());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const auto above =
        std::count_if(lines.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                      lines.end(),
                      [&](const PlotLine& later) { return later.points == lines[i].points; });
    text += drawn(lines[i], i, above, axes);
  }
  return text + "</svg>\n";
}

}  // namespace stagecraft::tools
