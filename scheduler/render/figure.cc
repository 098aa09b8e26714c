#include "stagecraft/scheduler/render/figure.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/model/schedule.h"
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
constexpr double kHeading = 24;     // pixels for the name of a panel
constexpr double kLateUpdate = 26;  // pixels of an update that takes no time, if there is room
constexpr double kBold = 1.15;      // width of bold text relative to other text
constexpr double kIdleNote = 88;
constexpr double kItemGap = 14;
constexpr double kNamed = 0.9;  // share of cells that must have names, if any text size allows it
constexpr std::size_t kMaxDrawnCycle = 200;

/// Numbers the updates at the end of a row that take no time.
void number_late_updates(std::span<Box> boxes) {
  std::size_t first = boxes.size();
  const auto late = [](const Box& box) {
    return box.task.kind == CellKind::Update && box.cell->tasks().size() == 1 &&
           !(box.end > box.begin);
  };
  while (first > 0 && late(boxes[first - 1])) {
    --first;
  }
  for (std::size_t i = first; i < boxes.size(); ++i) {
    boxes[i].late_update = static_cast<int>(i - first) + 1;
  }
}

/// Adds the tasks of a row, by column or, with a timeline, by time. Returns the number of entries.
std::size_t add_row(std::span<const Panel> panels,
                    std::size_t number,
                    std::size_t row,
                    std::vector<Box>& boxes) {
  const Panel& panel = panels[number];
  const Schedule::Row& cells = panel.schedule->rows()[row];
  const std::size_t first = boxes.size();
  std::size_t entry = 0;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    if (cells[c].idle()) {
      continue;
    }
    Box box{.cell = &cells[c],
            .panel = number,
            .row = row,
            .column = c,
            .begin = static_cast<double>(c),
            .end = static_cast<double>(c + 1)};
    if (panel.timeline != nullptr) {
      box.begin = panel.timeline->rows[row].entries[entry].start;
      box.end = panel.timeline->rows[row].entries[entry].end;
    }
    for (std::size_t member = 0; member < cells[c].tasks().size(); ++member) {
      box.task = cells[c].tasks()[member];
      box.member = member;
      box.surplus = panel.graph->is_surplus(box.task);
      boxes.push_back(box);
    }
    ++entry;
  }
  number_late_updates(std::span(boxes).subspan(first));
  return entry;
}

/// Returns all tasks of the schedules.
std::vector<Box> boxes_of(std::span<const Panel> panels) {
  std::vector<Box> boxes;
  std::size_t entries = 0;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    for (std::size_t r = 0; r < panels[p].schedule->rows().size(); ++r) {
      entries += add_row(panels, p, r, boxes);
    }
  }
  if (entries > kMaxSvgEntries) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("a picture holds at most {} cells, but {} {}; draw fewer microbatches "
                            "or rows",
                            kMaxSvgEntries,
                            panels.size() == 1 ? "this schedule has" : "these schedules have",
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
    add({.colors = entry.colors, .text = entry.text}, entry.colors.empty());
  }
  add({.colors = {std::string(kIdleColor)}, .text = "idle"}, false);
  return items;
}

std::string whole_name(const Task& task) {
  return to_string(task);
}

/// Returns the text that distinguishes neighbors of one color.
std::string microbatch_of(const Task& task) {
  return task.kind == CellKind::Update ? to_string(task) : std::to_string(task.microbatch.value);
}

template <class Words>
std::map<CellKind, double> widest(const std::vector<Box>& boxes, Words words) {
  std::map<CellKind, double> widths;
  for (const Box& box : boxes) {
    double& most = widths[box.task.kind];
    most = std::max(most, text_width(words(box.task), 1));
  }
  return widths;
}

bool fits(double width, double size, double room) {
  return width * size + 1 <= room;
}

/// Returns the largest size at which nearly all names fit, else nearly all microbatch numbers.
double size_of_names(const Figure& figure) {
  for (const auto* widths : {&figure.widest_name, &figure.widest_number}) {
    for (double size = kTextSize; size >= kSmallestName; size -= 0.5) {
      const auto fitting = std::ranges::count_if(figure.boxes, [&](const Box& box) {
        return fits(widths->at(box.task.kind), size, figure.width_of(box));
      });
      if (static_cast<double>(fitting) >= kNamed * static_cast<double>(figure.boxes.size())) {
        return size;
      }
    }
  }
  return kSmallestName;
}

std::vector<std::string> notes_of(const Figure& figure) {
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
  if (figure.named && std::ranges::any_of(figure.boxes, nothing)) {
    say(numbers ? "narrower cells have no text" : "cells too narrow for a name have no text");
  }
  if (std::ranges::any_of(figure.boxes, [](const Box& box) { return box.member > 0; })) {
    say("in one frame: tasks issued together");
  }
  for (const Panel& panel : figure.panels) {
    if (const auto surplus = find_surplus(*panel.schedule, *panel.graph); !surplus.empty()) {
      say(fmt::format("in empty boxes{}{}, {}",
                      panel.name.empty() ? "" : " of ",
                      panel.name,
                      to_string(surplus, *panel.graph)));
    }
  }
  return notes;
}

/// Returns the first cycle that a violation of the panel names.
std::span<const Task> cycle_of(const Panel& panel) {
  const auto found =
      std::ranges::find_if(panel.violations, [](const Violation& v) { return !v.cycle.empty(); });
  return found == panel.violations.end() ? std::span<const Task>()
                                         : std::span<const Task>(found->cycle);
}

/// Returns the length of a schedule, in units of the axis.
double length_of(const Panel& panel) {
  return panel.timeline != nullptr ? panel.timeline->makespan
                                   : static_cast<double>(panel.schedule->columns());
}

double longest(std::span<const Panel> panels) {
  double length = 0;
  for (const Panel& panel : panels) {
    length = std::max(length, length_of(panel));
  }
  return length;
}

std::string axis_name_of(std::span<const Panel> panels, const PictureOptions& options) {
  if (panels.front().timeline != nullptr) {
    return options.time_name;
  }
  return std::ranges::all_of(
             panels,
             [](const Panel& panel) { return panel.schedule->form() == Schedule::Form::Array; })
             ? "column"
             : "position";
}

/// Returns the bands below the axis.
std::vector<Band> bands_of(const Figure& figure) {
  std::vector<Band> bands;
  double y = figure.axis + kGap;
  for (const Panel& panel : figure.panels) {
    Band band{.name = ending(panel.name, (figure.width - 2 * kMargin) / kBold),
              .heading = y + kHeading - 7,
              .top = y + (panel.name.empty() ? 0 : kHeading),
              .length = length_of(panel) * figure.scale + figure.room_behind};
    y = band.bottom =
        band.top + figure.row_height * static_cast<double>(panel.schedule->rows().size());
    bands.push_back(band);
  }
  return bands;
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

std::string ending(std::string_view text, double width) {
  if (text_width(text) <= width) {
    return std::string(text);
  }
  constexpr std::string_view kDots = "...";
  const auto continues = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; };
  while (!text.empty() && text_width(kDots) + text_width(text) > width) {
    do {
      text.remove_prefix(1);
    } while (!text.empty() && continues(text.front()));  // of a character in UTF-8
  }
  return std::string(kDots) += text;
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

Figure::Figure(std::span<const Panel> drawn, const PictureOptions& options)
    : panels(drawn),
      boxes(boxes_of(panels)),
      colors(panels, options.color_by),
      timed(panels.front().timeline != nullptr),
      named(options.names),
      idle(timed && options.idle),
      axis_name(axis_name_of(panels, options)),
      length(longest(panels)),
      widest_name(widest(boxes, whole_name)),
      widest_number(widest(boxes, microbatch_of)) {
  const bool groups = std::ranges::any_of(boxes, [](const Box& box) { return box.member > 0; });
  // Arrows need room between the names.
  const bool cycles =
      std::ranges::any_of(panels, [](const Panel& panel) { return !cycle_of(panel).empty(); });
  const double stretch = cycles ? 2 : 1;
  row_height = stretch * (groups ? kRowOfGroups : kRow);
  double widest_row = text_width(axis_name);
  for (const Panel& panel : panels) {
    for (std::size_t row = 0; row < panel.schedule->rows().size(); ++row) {
      widest_row = std::max(widest_row, text_width(row_name(*panel.schedule, row)));
    }
  }
  left = 2 * kMargin + widest_row;
  int late_updates = 0;  // of any row
  for (const Box& box : boxes) {
    late_updates = std::max(late_updates, box.late_update);
  }
  const double whole = options.width.value_or(kWidestUsual);
  const double margin = idle ? kIdleNote : kMargin;
  const double room = std::max(whole - left - margin, 2.0);
  late_width = std::min(kLateUpdate, room / 2 / std::max(late_updates, 1));
  room_behind = late_width * late_updates;
  const double right = room_behind + margin;
  scale = std::max(whole - left - right, 1.0) / std::max(length, 1e-300);
  if (options.width) {
    width = *options.width;
  } else {
    scale = std::min(stretch * natural_scale(boxes, timed), scale);
    width = std::max(x(length) + right, kNarrowest);
  }
  if (!options.title.empty()) {
    title = wrapped(options.title, (width - 2 * kMargin) / kTitleGrowth);
  }
  axis = kAxis - kGap + (title.empty() ? 0 : kTitleGap) +
         kTitleGrowth * kLine * static_cast<double>(title.size());
  bands = bands_of(*this);
  ticks = ticks_of(length, scale, timed);
  name_size = size_of_names(*this);
  if (options.legend) {
    legend = laid_out(colors, width);
    notes = notes_of(*this);
  }
}

double Figure::left_of(const Box& box) const {
  return x(box.begin) + late_width * std::max(box.late_update - 1, 0);
}

double Figure::width_of(const Box& box) const {
  const double whole = box.late_update > 0 ? late_width : (box.end - box.begin) * scale;
  return std::max(whole - 1, 0.2);
}

double Figure::height_of(const Box& box) const {
  return (row_height - 2 * kGap) / static_cast<double>(box.cell->tasks().size());
}

double Figure::top_of(const Box& box) const {
  return y(box.panel, box.row) + kGap + height_of(box) * static_cast<double>(box.member);
}

std::vector<Box> Figure::marked() const {
  std::set<std::tuple<std::size_t, int, int>> cells;
  for (std::size_t p = 0; p < panels.size(); ++p) {
    for (const Violation& v : panels[p].violations) {
      for (const auto& [row, column] : v.cells) {
        cells.insert({p, row, column});
      }
    }
  }
  std::vector<Box> found;
  std::ranges::copy_if(boxes, std::back_inserter(found), [&](const Box& box) {
    return box.member == 0 &&
           cells.contains({box.panel, static_cast<int>(box.row), static_cast<int>(box.column)});
  });
  return found;
}

std::string Figure::name_in(const Box& box) const {
  const double room = named ? width_of(box) : 0;
  if (fits(widest_name.at(box.task.kind), name_size, room)) {
    return whole_name(box.task);
  }
  return fits(widest_number.at(box.task.kind), name_size, room) ? microbatch_of(box.task)
                                                                : std::string();
}

std::vector<Arrow> Figure::arrows(std::size_t panel) const {
  const std::span<const Task> cycle = cycle_of(panels[panel]);
  const auto middle_of = [&](const Task& task) -> Point {
    const auto box = std::ranges::find_if(
        boxes, [&](const Box& each) { return each.panel == panel && each.task == task; });
    return box == boxes.end()
               ? Point{}
               : Point{x((box->begin + box->end) / 2), y(panel, box->row) + row_height / 2};
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

}  // namespace stagecraft::drawing
