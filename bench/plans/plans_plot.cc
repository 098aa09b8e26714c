#include "stagecraft/bench/plans/plans_plot.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/scheduler/render/palette.h"

namespace stagecraft::bench {
namespace {

constexpr double kWidth = 760, kHeight = 430;  // pixels, like all sizes below
constexpr double kLeft = 62, kRight = kWidth - 22, kTop = 92, kBottom = kHeight - 54;

constexpr std::string_view kLight =
    "text{font:11px 'DejaVu Sans',Verdana,sans-serif;fill:#14181d}.title{font-size:14px}"
    ".axis{fill:#5c6773}.middle{text-anchor:middle}.end{text-anchor:end}.paper{fill:#fff}"
    ".tick{stroke:#d5dae1}.curve{fill:none;stroke-width:2;stroke-linejoin:round}"
    ".predicted.curve{stroke-dasharray:6 4}.band{fill-opacity:.25}";
constexpr std::string_view kDark =
    "text{fill:#e4e8ee}.axis{fill:#98a3b0}.paper{fill:#14181d}.tick{stroke:#39424e}";

/// Returns the style of two stages' colors, which contrast with light and dark paper alike.
std::string colours() {
  const auto strong = [](int stage) {
    return task_colour(
        {.kind = CellKind::Backward, .stage = StageId(stage), .microbatch = Microbatch(0)});
  };
  return fmt::format(
      ".predicted.curve{{stroke:{0}}}.measured.curve{{stroke:{1}}}.predicted.dot{{fill:{0}}}"
      ".measured.dot,.band{{fill:{1}}}",
      strong(0),
      strong(1));
}

/// Returns the smallest of 1, 2, 5, 10, ... and of tenths of these such that at most `most` of them
/// span the range.
double tick_of(double range, int most) {
  const double least = range / most;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// Axis maps the values of one axis to places in the picture.
struct Axis {
  double from = 0, to = 1, tick = 1;
  double begin = 0, end = 1;  ///< pixels

  [[nodiscard]] double at(double value) const {
    return begin + (value - from) / (to - from) * (end - begin);
  }
  [[nodiscard]] int ticks() const { return static_cast<int>((to - from) / tick * (1 + 1e-9)); }
};

class Plot {
 public:
  Plot(const Sweep& sweep, const std::string& below_title)
      : sweep_(sweep), below_title_(below_title), x_(operators_axis()), y_(time_axis()) {}

  [[nodiscard]] std::string draw() const {
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" role=\"img\" aria-label=\"Step time of {2} by split, "
               "predicted and measured\">\n<style>{3}{4}@media (prefers-color-scheme: "
               "dark){{{5}}}</style>\n<rect width=\"100%\" height=\"100%\" class=\"paper\"/>\n",
               kWidth,
               kHeight,
               drawing::escaped(sweep_.name),
               kLight,
               colours(),
               kDark) +
           draw_titles() + draw_axes() + draw_band() + draw_curve("measured", &median) +
           draw_curve("predicted", [](const SplitPoint& p) { return p.predicted; }) + "</svg>\n";
  }

 private:
  static double median(const SplitPoint& point) { return point.measured.median; }

  [[nodiscard]] Axis operators_axis() const {
    const double all = sweep_.operators;
    return {.from = 0, .to = all, .tick = tick_of(all, 10), .begin = kLeft, .end = kRight};
  }

  /// Returns an axis in milliseconds with round ends around everything that is drawn. It does not
  /// begin at 0, since the distance of the curves matters.
  [[nodiscard]] Axis time_axis() const {
    double least = sweep_.points.front().predicted, most = least;
    for (const SplitPoint& point : sweep_.points) {
      least = std::min({least, point.predicted, point.measured.first});
      most = std::max({most, point.predicted, point.measured.third});
    }
    const double tick = tick_of(1e3 * std::max(most - least, most * 0.01), 6);
    return {.from = std::floor(1e3 * least / tick) * tick,
            .to = std::ceil(1e3 * most / tick) * tick,
            .tick = tick,
            .begin = kBottom,
            .end = kTop};
  }

  [[nodiscard]] std::string draw_titles() const;
  [[nodiscard]] std::string draw_axes() const;
  [[nodiscard]] std::string draw_band() const;
  [[nodiscard]] std::string draw_curve(std::string_view which,
                                       double (*seconds)(const SplitPoint&)) const;
  [[nodiscard]] std::string place(const SplitPoint& point, double seconds) const {
    return fmt::format("{:.1f} {:.1f}", x_.at(point.at), y_.at(1e3 * seconds));
  }

  const Sweep& sweep_;
  const std::string& below_title_;
  Axis x_, y_;
};

std::string Plot::draw_titles() const {
  constexpr double kLegend = 72;
  std::string text = fmt::format(
      "<text x=\"{0}\" y=\"24\" class=\"title\">{1}: a step of two stages, by where the model is "
      "split</text>\n<text x=\"{0}\" y=\"44\" class=\"axis\">{2}</text>\n",
      16,
      drawing::escaped(sweep_.name),
      drawing::escaped(below_title_));
  const auto entry = [&](double x, std::string_view which, std::string_view words) {
    text +=
        fmt::format("<path d=\"M{} {}h32\" class=\"{} curve\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
                    x,
                    kLegend - 4,
                    which,
                    x + 40,
                    kLegend,
                    words);
  };
  entry(kLeft, "predicted", "predicted");
  entry(kLeft + 130, "measured", "measured: median, band between the quartiles");
  return text;
}

std::string Plot::draw_axes() const {
  std::string text;
  for (int i = 0; i <= y_.ticks(); ++i) {
    const double value = y_.from + i * y_.tick;
    text += fmt::format(
        "<path d=\"M{0} {1:.1f}H{2}\" class=\"tick\"/><text x=\"{3}\" y=\"{4:.1f}\" class=\"axis "
        "end\">{5:g}</text>\n",
        kLeft,
        y_.at(value),
        kRight,
        kLeft - 8,
        y_.at(value) + 4,
        value);
  }
  for (int i = 0; i <= x_.ticks(); ++i) {
    const double value = i * x_.tick;
    text += fmt::format(
        "<path d=\"M{0:.1f} {1}v5\" class=\"tick\"/><text x=\"{0:.1f}\" y=\"{2}\" class=\"axis "
        "middle\">{3:g}</text>\n",
        x_.at(value),
        kBottom,
        kBottom + 19,
        value);
  }
  return text + fmt::format(
                    "<text x=\"{}\" y=\"{}\" class=\"axis middle\">operators before the split, of "
                    "{}</text>\n<text transform=\"translate(16 {}) rotate(-90)\" class=\"axis "
                    "middle\">step, ms</text>\n",
                    (kLeft + kRight) / 2,
                    kBottom + 41,
                    sweep_.operators,
                    (kTop + kBottom) / 2);
}

/// Draws along the first quartiles and back along the third ones.
std::string Plot::draw_band() const {
  std::string path;
  for (const SplitPoint& point : sweep_.points) {
    path += (path.empty() ? "M" : "L") + place(point, point.measured.first);
  }
  for (auto point = sweep_.points.rbegin(); point != sweep_.points.rend(); ++point) {
    path += "L" + place(*point, point->measured.third);
  }
  return fmt::format("<path d=\"{}z\" class=\"band\"/>\n", path);
}

std::string Plot::draw_curve(std::string_view which, double (*seconds)(const SplitPoint&)) const {
  std::string path, dots;
  for (const SplitPoint& point : sweep_.points) {
    path += (path.empty() ? "M" : "L") + place(point, seconds(point));
    dots += fmt::format(
        "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"{} dot\"><title>{} before operator "
        "{}: {:.1f} ms</title></circle>\n",
        x_.at(point.at),
        y_.at(1e3 * seconds(point)),
        which,
        which,
        point.at,
        1e3 * seconds(point));
  }
  return fmt::format("<path d=\"{}\" class=\"{} curve\"/>\n{}", path, which, dots);
}

}  // namespace

std::string plot_of(const Sweep& sweep, const std::string& below_title) {
  return Plot(sweep, below_title).draw();
}

}  // namespace stagecraft::bench
