#include "stagecraft/scheduler/render/svg.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/render/escape.h"
#include "stagecraft/scheduler/render/palette.h"
#include "stagecraft/scheduler/surplus.h"

namespace stagecraft {
namespace {

constexpr double kColumn = 40;      // pixels per column
constexpr double kMeanTask = 54;    // pixels of a timeline's mean task
constexpr double kWidest = 16'000;  // pixels; longer ones are drawn to a smaller scale
constexpr double kNarrowest = 640;  // where there are violations to read
constexpr double kRow = 28;
constexpr double kRowOfGroups = 38;
constexpr double kLabel = 40;
constexpr double kTop = 26;
constexpr double kIdleNote = 84;
constexpr double kLine = 16;
constexpr double kLetter = 6.3;  // pixels, on average
constexpr std::size_t kMaxListed = 20;
constexpr std::size_t kMaxDrawnCycle = 200;

constexpr std::string_view kStyle =
    "text{font:11px 'DejaVu Sans',Verdana,sans-serif;text-anchor:middle;fill:#14181d}"
    ".label{text-anchor:end;fill:#5c6773}.note{text-anchor:start}.axis{fill:#5c6773}"
    ".row{fill:#f3f5f8}.tick{stroke:#d5dae1}.group{fill:none;stroke:#14181d;stroke-width:.75}"
    ".surplus{fill-opacity:0;stroke:#5c6773;stroke-dasharray:3 2}.surplus-text{fill:#5c6773}"
    ".bad{fill:none;stroke:#d3122a;stroke-width:2.5}.bad-text{fill:#d3122a}";

/// One entry in place. Units: columns, or the timeline's own.
struct Box {
  std::size_t row = 0;
  double begin = 0;
  double end = 0;
  const Cell* cell = nullptr;
  std::size_t column = 0;
};

/// All entries of the schedule, in columns or, with a timeline, in time.
std::vector<Box> boxes_of(const Schedule& schedule, const Timeline* timeline) {
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
              .cell = &row[c],
              .column = c};
      if (timeline != nullptr) {
        box.begin = timeline->rows[r].entries[entry].start;
        box.end = timeline->rows[r].entries[entry].end;
      }
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

/// Such that names fit into the usual task, in whatever unit the times are.
double time_scale(const std::vector<Box>& boxes) {
  double busy = 0;
  for (const Box& box : boxes) {
    busy += box.end - box.begin;
  }
  return busy > 0 ? kMeanTask * static_cast<double>(boxes.size()) / busy : kColumn;
}

/// The smallest of 1, 2, 5, 10, ... that is not below `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// Breaks at blanks into lines of at most `width` letters.
std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines;
  while (text.size() > width) {
    std::size_t at = text.rfind(' ', width);
    at = at == std::string_view::npos || at == 0 ? width : at;
    lines.emplace_back(text.substr(0, at));
    text.remove_prefix(std::min(text.size(), text[at] == ' ' ? at + 1 : at));
  }
  lines.emplace_back(text);
  return lines;
}

class Picture {
 public:
  Picture(const Schedule& schedule,
          const StageGraph& graph,
          const Timeline* timeline,
          const std::vector<Violation>& violations)
      : schedule_(schedule),
        graph_(graph),
        timeline_(timeline),
        violations_(violations),
        boxes_(boxes_of(schedule, timeline)),
        length_(timeline != nullptr ? timeline->makespan : static_cast<double>(schedule.columns())),
        scale_(timeline != nullptr ? time_scale(boxes_) : kColumn),
        surplus_(find_surplus(schedule, graph)) {
    const bool groups =
        std::ranges::any_of(boxes_, [](const Box& box) { return box.cell->is_group(); });
    row_height_ = groups ? kRowOfGroups : kRow;
    for (const Violation& v : violations) {
      if (cycle_.empty() && !v.cycle.empty()) {
        cycle_ = v.cycle;
        scale_ *= 2;  // room for arrows between the names
        row_height_ = 2 * kRow;
      }
    }
    scale_ = std::min(scale_, kWidest / std::max(length_, 1e-300));
  }
  [[nodiscard]] std::string draw() const;

 private:
  [[nodiscard]] double x(double at) const { return kLabel + at * scale_; }
  [[nodiscard]] double y(std::size_t row) const {
    return kTop + row_height_ * static_cast<double>(row);
  }
  [[nodiscard]] double bottom() const { return y(schedule_.rows().size()); }
  [[nodiscard]] double width() const {
    return std::max(x(length_) + (timeline_ != nullptr ? kIdleNote : 16),
                    violations_.empty() && surplus_.empty() ? 0.0 : kNarrowest);
  }
  [[nodiscard]] std::string draw_axis() const;
  [[nodiscard]] std::string draw_row(std::size_t row) const;
  [[nodiscard]] std::string draw_box(const Box& box) const;
  [[nodiscard]] std::string draw_marks() const;
  [[nodiscard]] std::string draw_cycle() const;
  [[nodiscard]] std::size_t letters() const {
    return static_cast<std::size_t>((width() - 24) / kLetter);
  }
  [[nodiscard]] std::vector<std::string> surplus_lines() const;
  [[nodiscard]] std::vector<std::string> violation_lines() const;

  const Schedule& schedule_;
  const StageGraph& graph_;
  const Timeline* timeline_;
  const std::vector<Violation>& violations_;
  std::vector<Box> boxes_;
  double length_;
  double scale_;
  double row_height_ = kRow;
  std::vector<Surplus> surplus_;
  std::vector<Task> cycle_;  ///< the first that a violation names
};

std::string Picture::draw_axis() const {
  const bool columns = timeline_ == nullptr;
  const double step = columns ? std::max(1.0, round_step(24 / scale_)) : round_step(70 / scale_);
  std::string text;
  const auto ticks = static_cast<std::size_t>(std::floor(length_ / step * (1 + 1e-9)));
  for (std::size_t i = 0; i <= ticks; ++i) {
    const double at = step * static_cast<double>(i);
    if (columns && at >= length_) {
      break;
    }
    text += fmt::format(R"(<text x="{:.1f}" y="15" class="axis">{:g}</text>)",
                        x(at) + (columns ? scale_ / 2 : 0),
                        at);
    if (!columns) {
      text += fmt::format(
          R"(<path d="M{0:.1f} 20V{1:.1f}" class="tick"/>)", x(at), std::max(bottom(), kTop));
    }
  }
  return text + '\n';
}

std::string Picture::draw_row(std::size_t row) const {
  const double middle = y(row) + row_height_ / 2 + 4;
  std::string text =
      fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="row"/>)",
                  x(0),
                  y(row) + 2,
                  length_ * scale_,
                  row_height_ - 4);
  text += fmt::format(
      R"(<text x="{:.1f}" y="{:.1f}" class="label">d{}</text>)", kLabel - 8, middle, row);
  if (timeline_ != nullptr) {
    text += fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="note">{:.1f}% idle</text>)",
                        x(length_) + 8,
                        middle,
                        100 * timeline_->bubble_fraction(row));
  }
  return text + '\n';
}

std::string Picture::draw_box(const Box& box) const {
  const auto tasks = box.cell->tasks();
  const double wide = std::max((box.end - box.begin) * scale_ - 1, 0.2);
  const double high = (row_height_ - 4) / static_cast<double>(tasks.size());
  const std::string when = timeline_ != nullptr ? fmt::format("{:g} to {:g}", box.begin, box.end)
                                                : fmt::format("column {}", box.column);
  std::string names = to_string(*box.cell);
  for (const Task& task : tasks) {
    names += graph_.is_surplus(task) ? fmt::format(", {} does nothing", to_string(task)) : "";
  }
  std::string text =
      fmt::format("<g class=\"entry\"><title>{} on row {}, {}</title>", names, box.row, when);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double top = y(box.row) + 2 + high * static_cast<double>(i);
    const bool surplus = graph_.is_surplus(tasks[i]);
    text += fmt::format(
        R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" {}/>)",
        x(box.begin),
        top,
        wide,
        high,
        surplus ? R"(class="surplus")" : fmt::format(R"(fill="{}")", task_colour(tasks[i])));
    const std::string name = to_string(tasks[i]);
    if (wide >= kLetter * static_cast<double>(name.size()) + 2) {
      text += fmt::format(R"(<text x="{:.1f}" y="{:.1f}"{}>{}</text>)",
                          x(box.begin) + wide / 2,
                          top + high / 2 + 4,
                          surplus ? R"( class="surplus-text")" : "",
                          name);
    }
  }
  if (tasks.size() > 1) {
    text +=
        fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="group"/>)",
                    x(box.begin),
                    y(box.row) + 2,
                    wide,
                    row_height_ - 4);
  }
  return text + "</g>\n";
}

/// Above all boxes, so that no neighbour hides a frame.
std::string Picture::draw_marks() const {
  std::set<std::pair<int, int>> marked;
  for (const Violation& v : violations_) {
    marked.insert(v.cells.begin(), v.cells.end());
  }
  std::string text;
  for (const Box& box : boxes_) {
    if (marked.contains({static_cast<int>(box.row), static_cast<int>(box.column)})) {
      text += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"bad\"/>\n",
          x(box.begin),
          y(box.row) + 2,
          std::max((box.end - box.begin) * scale_ - 1, 1.0),
          row_height_ - 4);
    }
  }
  return text + draw_cycle();
}

/// Arrows from task to task, bowed so that there and back stay apart.
std::string Picture::draw_cycle() const {
  const auto middle_of = [&](const Task& task) -> std::pair<double, double> {
    const auto box = std::ranges::find_if(boxes_, [&](const Box& b) {
      return std::ranges::find(b.cell->tasks(), task) != b.cell->tasks().end();
    });
    return box == boxes_.end()
               ? std::pair(0.0, 0.0)
               : std::pair(x((box->begin + box->end) / 2), y(box->row) + row_height_ / 2);
  };
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle_.size(), kMaxDrawnCycle); ++i) {
    const auto [x0, y0] = middle_of(cycle_[i == 0 ? cycle_.size() - 1 : i - 1]);
    const auto [x1, y1] = middle_of(cycle_[i]);
    const double far = std::hypot(x1 - x0, y1 - y0);
    if (far < 1) {
      continue;  // both in one group
    }
    const double bow = 2 * std::min(12.0, far * 0.2) / far;
    const double end = std::min(18.0, far * 0.25) / far;  // leaves the names readable
    text += fmt::format(
        "<path d=\"M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}\" class=\"bad\" "
        "marker-end=\"url(#head)\"/>\n",
        x0 + (x1 - x0) * end,
        y0 + (y1 - y0) * end,
        (x0 + x1) / 2 - bow * (y1 - y0),
        (y0 + y1) / 2 + bow * (x1 - x0),
        x1 - (x1 - x0) * end,
        y1 - (y1 - y0) * end);
  }
  return text;
}

std::vector<std::string> Picture::surplus_lines() const {
  return surplus_.empty() ? std::vector<std::string>()
                          : wrapped("in empty boxes, " + to_string(surplus_, graph_), letters());
}

std::vector<std::string> Picture::violation_lines() const {
  std::vector<std::string> lines;
  const std::size_t listed = std::min(violations_.size(), kMaxListed);
  for (const Violation& v : std::span(violations_).first(listed)) {
    for (std::string& line : wrapped(to_string(v), letters())) {
      lines.push_back(std::move(line));
    }
  }
  if (listed < violations_.size()) {
    lines.push_back(fmt::format("... and {} more", violations_.size() - listed));
  }
  return lines;
}

std::string Picture::draw() const {
  const std::vector<std::string> notes = surplus_lines();
  const std::vector<std::string> faults = violation_lines();
  const double height = bottom() + 12 + kLine * static_cast<double>(notes.size() + faults.size());
  std::string text = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 "
      "0 {0:.0f} {1:.0f}\" role=\"img\" aria-label=\"Schedule of {2} rows, {3} stages, {4} "
      "microbatches\">\n<style>{5}</style>\n<defs><marker id=\"head\" markerWidth=\"8\" "
      "markerHeight=\"8\" refX=\"6\" refY=\"4\" orient=\"auto\" "
      "markerUnits=\"userSpaceOnUse\"><path d=\"M0 0L8 4L0 8z\" "
      "fill=\"#d3122a\"/></marker></defs>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width(),
      height,
      schedule_.rows().size(),
      schedule_.stages(),
      schedule_.microbatches(),
      kStyle);
  for (std::size_t row = 0; row < schedule_.rows().size(); ++row) {
    text += draw_row(row);
  }
  text += draw_axis();
  for (const Box& box : boxes_) {
    text += draw_box(box);
  }
  text += draw_marks();
  double line = bottom();
  const auto write = [&](const std::vector<std::string>& lines, const char* style) {
    for (const std::string& words : lines) {
      line += kLine;
      text += fmt::format("<text x=\"12\" y=\"{:.1f}\" class=\"note {}\">{}</text>\n",
                          line,
                          style,
                          render::escaped(words));
    }
  };
  write(notes, "surplus-text");
  write(faults, "bad-text");
  return text + "</svg>\n";
}

}  // namespace

std::string render_svg(const Schedule& schedule,
                       const StageGraph& graph,
                       const Timeline* timeline,
                       const std::vector<Violation>& violations) {
  return Picture(schedule, graph, timeline, violations).draw();
}

}  // namespace stagecraft
