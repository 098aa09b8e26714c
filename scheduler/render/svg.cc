#include "stagecraft/scheduler/render/svg.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {
namespace {

constexpr double kColumn = 40;  // pixels per column, or per unit of a timeline
constexpr double kRow = 28;
constexpr double kLabel = 40;
constexpr double kTop = 24;
constexpr double kIdleNote = 80;
constexpr double kWidest = 16'000;  // pixels; longer timelines are drawn to a smaller scale

/// One entry in place. Units: columns, or the timeline's own.
struct Box {
  std::size_t row = 0;
  double begin = 0;
  double end = 0;
  const Cell* cell = nullptr;
  bool marked = false;
};

using Places = std::set<std::pair<int, int>>;

Places marked_places(const std::vector<Violation>& violations) {
  Places places;
  for (const Violation& v : violations) {
    places.insert(v.cells.begin(), v.cells.end());
  }
  return places;
}

/// All entries of the schedule, in columns or, with a timeline, in time.
std::vector<Box> boxes_of(const Schedule& schedule,
                          const Timeline* timeline,
                          const Places& marked) {
  std::vector<Box> boxes;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const Schedule::Row& row = schedule.rows()[r];
    std::size_t entry = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c].idle()) {
        continue;
      }
      Box box{.row = r,
              .begin = static_cast<double>(c),
              .end = static_cast<double>(c + 1),
              .cell = &row[c]};
      if (timeline != nullptr) {
        box.begin = timeline->rows[r].entries[entry].start;
        box.end = timeline->rows[r].entries[entry].end;
      }
      box.marked = marked.contains({static_cast<int>(r), static_cast<int>(c)});
      boxes.push_back(box);
      ++entry;
    }
  }
  if (boxes.size() > kMaxSvgEntries) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a picture holds at most {} cells, this schedule has {}; draw fewer "
                            "microbatches or rows",
                            kMaxSvgEntries,
                            boxes.size()));
  }
  return boxes;
}

/// Hue by stage, lightness by kind; neighbouring stages get hues far apart.
std::string colour(const Task& task) {
  const int hue = static_cast<int>((task.stage.index() * 137) % 360);
  int lightness = 78;
  switch (task.kind) {
    case CellKind::Backward:
      lightness = 58;
      break;
    case CellKind::BackwardInput:
      lightness = 66;
      break;
    case CellKind::BackwardWeight:
      lightness = 86;
      break;
    case CellKind::Update:
      return "hsl(0,0%,80%)";
    default:
      break;
  }
  return fmt::format("hsl({},60%,{}%)", hue, lightness);
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

class Picture {
 public:
  Picture(const Schedule& schedule,
          const Timeline* timeline,
          const std::vector<Violation>& violations)
      : schedule_(schedule),
        timeline_(timeline),
        violations_(violations),
        boxes_(boxes_of(schedule, timeline, marked_places(violations))),
        length_(timeline != nullptr ? timeline->makespan : static_cast<double>(schedule.columns())),
        scale_(std::min(kColumn, kWidest / std::max(length_, 1.0))) {}
  [[nodiscard]] std::string draw() const;

 private:
  [[nodiscard]] double x(double at) const { return kLabel + at * scale_; }
  [[nodiscard]] static double y(std::size_t row) { return kTop + kRow * static_cast<double>(row); }
  [[nodiscard]] std::string draw_box(const Box& box) const;
  [[nodiscard]] std::string draw_row(std::size_t row) const;
  [[nodiscard]] std::string draw_violations(double top) const;

  const Schedule& schedule_;
  const Timeline* timeline_;
  const std::vector<Violation>& violations_;
  std::vector<Box> boxes_;
  double length_;
  double scale_;
};

std::string Picture::draw_box(const Box& box) const {
  const auto tasks = box.cell->tasks();
  const double width = (box.end - box.begin) * scale_;
  const double height = (kRow - 4) / static_cast<double>(tasks.size());
  std::string when = timeline_ != nullptr ? fmt::format(", {:g} to {:g}", box.begin, box.end)
                                          : fmt::format(", column {:g}", box.begin);
  std::string text =
      fmt::format("<g><title>{} on row {}{}</title>", to_string(*box.cell), box.row, when);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double top = y(box.row) + 2 + height * static_cast<double>(i);
    text += fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" fill="{}"/>)",
                        x(box.begin),
                        top,
                        width,
                        height,
                        colour(tasks[i]));
    const std::string name = to_string(tasks[i]);
    if (width >= 6.5 * static_cast<double>(name.size())) {
      text += fmt::format(R"(<text x="{:.1f}" y="{:.1f}">{}</text>)",
                          x(box.begin) + width / 2,
                          top + height / 2 + 4,
                          name);
    }
  }
  text +=
      fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="{}"/></g>)",
                  x(box.begin),
                  y(box.row) + 2,
                  width,
                  kRow - 4,
                  box.marked ? "bad" : "frame");
  return text + '\n';
}

std::string Picture::draw_row(std::size_t row) const {
  std::string text = fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"label\">d{}</text>\n",
                                 kLabel - 8,
                                 y(row) + kRow / 2 + 4,
                                 row);
  if (timeline_ != nullptr) {
    text += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"note\">{:.1f}% idle</text>\n",
                        x(length_) + 8,
                        y(row) + kRow / 2 + 4,
                        100 * timeline_->bubble_fraction(row));
  }
  return text;
}

std::string Picture::draw_violations(double top) const {
  std::string text;
  for (std::size_t i = 0; i < violations_.size() && i < 20; ++i) {
    text += fmt::format("<text x=\"8\" y=\"{:.1f}\" class=\"note bad-text\">{}</text>\n",
                        top + 16 * static_cast<double>(i + 1),
                        escaped(to_string(violations_[i])));
  }
  return text;
}

std::string Picture::draw() const {
  const double bottom = y(schedule_.rows().size());
  const double width = std::max(x(length_) + (timeline_ != nullptr ? kIdleNote : 16),
                                violations_.empty() ? 0.0 : 900.0);
  const double height =
      bottom + 12 + 16 * static_cast<double>(std::min<std::size_t>(violations_.size(), 20));
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\">\n"
      "<style>text{{font:11px "
      "sans-serif;text-anchor:middle}}.label{{text-anchor:end}}.note{{text-anchor:start}}"
      ".frame{{fill:none;stroke:#666;stroke-width:.5}}.bad{{fill:none;stroke:#d00;stroke-width:2.5}"
      "}.bad-text{{fill:#d00}}"
      "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width,
      height);
  for (std::size_t row = 0; row < schedule_.rows().size(); ++row) {
    text += draw_row(row);
  }
  for (const Box& box : boxes_) {
    text += draw_box(box);
  }
  return text + draw_violations(bottom) + "</svg>\n";
}

}  // namespace

std::string render_svg(const Schedule& schedule, const std::vector<Violation>& violations) {
  return Picture(schedule, nullptr, violations).draw();
}

std::string render_svg(const Schedule& schedule,
                       const Timeline& timeline,
                       const std::vector<Violation>& violations) {
  return Picture(schedule, &timeline, violations).draw();
}

}  // namespace stagecraft
