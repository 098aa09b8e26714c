#include "stagecraft/scheduler/render/figure.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/surplus.h"

namespace stagecraft::drawing {
namespace {

constexpr double kColumn = 40;      // pixels per column
constexpr double kMeanTask = 54;    // pixels of a timeline's mean task
constexpr double kNarrowest = 480;  // pixels, for legend and notes, if no width is requested
constexpr double kRow = 28;
constexpr double kRowOfGroups = 38;
constexpr double kGap = 2;  // pixels above and below a row's boxes
constexpr double kAxis = 26;
constexpr double kTitleGap = 6;
constexpr double kIdleNote = 88;
constexpr double kItemGap = 14;
constexpr double kNamed = 0.9;  // share of cells that must have names, if any text size allows it
constexpr std::size_t kMaxDrawnCycle = 200;

/// Returns all tasks of the schedule, by column or, with a timeline, by time.
std::vector<Box> boxes_of(const Schedule& schedule,
                          const StageGraph& graph,
                          const Timeline* timeline) {
  std::vector<Box> boxes;
  std::size_t entries = 0;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const Schedule::Row& row = schedule.rows()[r];
    std::size_t entry = 0;
    for (std::size_t c = 0; c < row.size(); ++c) {
      if (row[c].idle()) {
        continue;
      }
      Box box{.cell = &row[c],
              .row = r,
              .column = c,
              .begin = static_cast<double>(c),
              .end = static_cast<double>(c + 1)};
      if (timeline != nullptr) {
        box.begin = timeline->rows[r].entries[entry].start;
        box.end = timeline->rows[r].entries[entry].end;
      }
      for (std::size_t member = 0; member < row[c].tasks().size(); ++member) {
        box.task = row[c].tasks()[member];
        box.member = member;
        box.surplus = graph.is_surplus(box.task);
        boxes.push_back(box);
      }
      ++entry;
    }
    entries += entry;
  }
  if (entries > kMaxSvgEntries) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a picture holds at most {} cells, but this schedule has {}; draw "
                            "fewer microbatches or rows",
                            kMaxSvgEntries,
                            entries));
  }
  return boxes;
}

/// Returns a scale at which names fit into a typical task, in any unit of time.
double natural_scale(const std::vector<Box>& boxes, bool timed) {
  double busy = 0;
  for (const Box& box : boxes) {
    busy += box.end - box.begin;
  }
  return timed && busy > 0 ? kMeanTask * static_cast<double>(boxes.size()) / busy : kColumn;
}

/// Returns the smallest of 1, 2, 5, 10, ... that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least) {
      return factor * power;
    }
  }
  return 10 * power;
}

/// Returns ticks far enough apart for their labels.
std::vector<Tick> ticks_of(double length, double scale, bool timed) {
  if (!(length > 0)) {
    return {};
  }
  const double rough = round_step(24 / scale);
  const double label = text_width(fmt::format("{:g}", std::max(length, length - rough)));
  double step = round_step(std::max(timed ? 40.0 : 24.0, label + 8) / scale);
  if (!timed) {
    step = std::max(step, 1.0);
  }
  std::vector<Tick> ticks;
  const auto count = static_cast<std::size_t>(std::floor(length / step * (1 + 1e-9)));
  for (std::size_t i = 0; i <= count; ++i) {
    const double at = step * static_cast<double>(i);
    if (timed || at < length) {
      ticks.push_back({at, fmt::format("{:g}", at)});
    }
  }
  return ticks;
}

/// Lays out the legend from left to right, then on the next line; shades start a new line.
std::vector<LegendItem> laid_out(const TaskColors& colors, double width) {
  std::vector<LegendItem> items;
  double x = kMargin;
  std::size_t line = 0;
  const auto add = [&](LegendItem item, bool breaks) {
    item.x = kMargin;
    const double wide = item.text_x() - kMargin + text_width(item.text);
    if (x > kMargin && (breaks || x + wide > width - kMargin)) {
      x = kMargin;
      ++line;
    }
    item.x = x;
    item.line = line;
    x += wide + kItemGap;
    items.push_back(std::move(item));
  };
  for (const LegendEntry& entry : colors.legend()) {
    LegendItem item{.text = entry.text};
    for (const Task& example : entry.examples) {
      item.colors.push_back(colors.of(example));
    }
    add(std::move(item), entry.examples.empty());
  }
  add({.colors = {std::string(kIdleColor)}, .text = "idle"}, false);
  return items;
}

bool fits(std::string_view words, double size, double width) {
  return text_width(words, size) + 2 <= width;
}

std::string whole_name(const Task& task) {
  return to_string(task);
}

/// Returns the text that distinguishes neighbors of one color.
std::string microbatch_of(const Task& task) {
  return task.kind == CellKind::Update ? to_string(task) : std::to_string(task.microbatch.value);
}

/// Returns the largest size at which nearly all names fit, else nearly all microbatch numbers.
double size_of_names(const Figure& figure) {
  for (const auto& words : {whole_name, microbatch_of}) {
    for (double size = kTextSize; size >= kSmallestName; size -= 0.5) {
      const auto fitting = std::ranges::count_if(figure.boxes, [&](const Box& box) {
        return fits(words(box.task), size, figure.width_of(box));
      });
      if (static_cast<double>(fitting) >= kNamed * static_cast<double>(figure.boxes.size())) {
        return size;
      }
    }
  }
  return kSmallestName;
}

std::vector<std::string> notes_of(const Figure& figure,
                                  const Schedule& schedule,
                                  const StageGraph& graph) {
  std::vector<std::string> notes;
  const auto say = [&](std::string_view words) {
    for (std::string& line : wrapped(words, figure.width - 2 * kMargin)) {
      notes.push_back(std::move(line));
    }
  };
  const auto nothing = [&](const Box& box) { return figure.name_in(box).empty(); };
  const bool numbers = std::ranges::any_of(figure.boxes, [&](const Box& box) {
    const std::string name = figure.name_in(box);
    return !name.empty() && name != whole_name(box.task);
  });
  if (numbers) {
    say("a number alone is the microbatch, in cells too narrow for a name");
  }
  if (std::ranges::any_of(figure.boxes, nothing)) {
    say(numbers ? "narrower cells have no text" : "cells too narrow for a name have no text");
  }
  if (std::ranges::any_of(figure.boxes, [](const Box& box) { return box.member > 0; })) {
    say("in one frame: tasks issued together");
  }
  if (const auto surplus = find_surplus(schedule, graph); !surplus.empty()) {
    say("in empty boxes, " + to_string(surplus, graph));
  }
  return notes;
}

}  // namespace

double text_width(std::string_view text, double size) {
  double ems = 0;  // as in DejaVu Sans and Verdana, the widest common fonts
  for (const char c : text) {
    const bool wide = c == 'W' || c == 'M' || c == 'm' || c == 'w' || c == '%' || c == '@';
    const bool narrow = c == ' ' || c == '.' || c == ',' || c == 'i' || c == 'l' || c == ':';
    ems += wide ? 1.0 : narrow ? 0.4 : c >= 'A' && c <= 'Z' ? 0.75 : 0.64;
  }
  return ems * size;
}

std::vector<std::string> wrapped(std::string_view text, double width) {
  std::vector<std::string> lines;
  while (text_width(text) > width) {
    std::size_t fits = 1;
    while (text_width(text.substr(0, fits + 1)) <= width) {
      ++fits;
    }
    const std::size_t blank = text.rfind(' ', fits);
    const std::size_t at = blank == std::string_view::npos || blank == 0 ? fits : blank;
    lines.emplace_back(text.substr(0, at));
    text.remove_prefix(std::min(text.size(), text[at] == ' ' ? at + 1 : at));
  }
  lines.emplace_back(text);
  return lines;
}

double LegendItem::text_x() const {
  return x + kSwatch * static_cast<double>(colors.size()) + (colors.empty() ? 0 : 5);
}

Figure::Figure(const Schedule& schedule,
               const StageGraph& graph,
               const Timeline* timeline,
               const PictureOptions& options,
               double stretch)
    : boxes(boxes_of(schedule, graph, timeline)),
      colors(schedule, graph, options.color_by),
      timed(timeline != nullptr),
      axis_name(timed                                      ? "time"
                : schedule.form() == Schedule::Form::Array ? "column"
                                                           : "position"),
      length(timed ? timeline->makespan : static_cast<double>(schedule.columns())) {
  const bool groups = std::ranges::any_of(boxes, [](const Box& box) { return box.member > 0; });
  row_height = stretch * (groups ? kRowOfGroups : kRow);
  double widest = text_width(axis_name);
  for (std::size_t row = 0; row < schedule.rows().size(); ++row) {
    widest = std::max(widest, text_width(row_name(schedule, row)));
  }
  left = 2 * kMargin + widest;
  const double right = timed ? kIdleNote : kMargin;
  if (options.width) {
    width = *options.width;
    scale = std::max(width - left - right, 1.0) / std::max(length, 1e-300);
  } else {
    scale =
        std::min(stretch * natural_scale(boxes, timed), kWidestPicture / std::max(length, 1e-300));
    width = std::max(x(length) + right, kNarrowest);
  }
  if (!options.title.empty()) {
    title = wrapped(options.title, (width - 2 * kMargin) / kTitleGrowth);
  }
  top = kAxis + (title.empty() ? 0 : kTitleGap) +
        kTitleGrowth * kLine * static_cast<double>(title.size());
  ticks = ticks_of(length, scale, timed);
  legend = laid_out(colors, width);
  name_size = size_of_names(*this);
  notes = notes_of(*this, schedule, graph);
}

double Figure::width_of(const Box& box) const {
  return std::max((box.end - box.begin) * scale - 1, 0.2);
}

double Figure::height_of(const Box& box) const {
  return (row_height - 2 * kGap) / static_cast<double>(box.cell->tasks().size());
}

double Figure::top_of(const Box& box) const {
  return y(box.row) + kGap + height_of(box) * static_cast<double>(box.member);
}

std::vector<Box> Figure::marked(const std::vector<Violation>& violations) const {
  std::set<std::pair<int, int>> cells;
  for (const Violation& v : violations) {
    cells.insert(v.cells.begin(), v.cells.end());
  }
  std::vector<Box> found;
  std::ranges::copy_if(boxes, std::back_inserter(found), [&](const Box& box) {
    return box.member == 0 &&
           cells.contains({static_cast<int>(box.row), static_cast<int>(box.column)});
  });
  return found;
}

std::string Figure::name_in(const Box& box) const {
  for (const auto& words : {whole_name, microbatch_of}) {
    if (std::string text = words(box.task); fits(text, name_size, width_of(box))) {
      return text;
    }
  }
  return {};
}

std::vector<Arrow> Figure::arrows(std::span<const Task> cycle) const {
  const auto middle_of = [&](const Task& task) -> Point {
    const auto box = std::ranges::find(boxes, task, &Box::task);
    return box == boxes.end() ? Point{}
                              : Point{x((box->begin + box->end) / 2), y(box->row) + row_height / 2};
  };
  std::vector<Arrow> list;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMaxDrawnCycle); ++i) {
    const Point a = middle_of(cycle[i == 0 ? cycle.size() - 1 : i - 1]);
    const Point b = middle_of(cycle[i]);
    const double far = std::hypot(b.x - a.x, b.y - a.y);
    if (far < 1) {
      continue;  // both in one group
    }
    const double bow = 2 * std::min(12.0, far * 0.2) / far;
    const double end = std::min(18.0, far * 0.25) / far;  // keeps the names readable
    list.push_back({{a.x + (b.x - a.x) * end, a.y + (b.y - a.y) * end},
                    {(a.x + b.x) / 2 - bow * (b.y - a.y), (a.y + b.y) / 2 + bow * (b.x - a.x)},
                    {b.x - (b.x - a.x) * end, b.y - (b.y - a.y) * end}});
  }
  return list;
}

std::span<const Task> cycle_of(const std::vector<Violation>& violations) {
  const auto found =
      std::ranges::find_if(violations, [](const Violation& v) { return !v.cycle.empty(); });
  return found == violations.end() ? std::span<const Task>() : std::span<const Task>(found->cycle);
}

}  // namespace stagecraft::drawing
