/// Figure holds the positions of boxes, ticks and legend in a picture of schedules, independent of
/// the output format.
///
///     title                       render_svg() and render_tikz() draw the same Figure. Lengths are
///     axis   0    5    10         CSS pixels of 1/96 inch; y grows downwards. A picture has a band
///     name of a panel             of rows for each panel.
///     d0    [0F0][0F1]    [0B0]
///     legend, notes
///
/// FG-1: no text is wider than its cell: names are set smaller, down to kSmallestName, and left out
///       if even that is too wide.
/// FG-2: boxes of one kind and width are named alike: the widest name of the kind decides for all.
/// Private to render/. Pure.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/render/panel.h"
#include "stagecraft/scheduler/render/picture_options.h"
#include "stagecraft/scheduler/render/task_colors.h"

namespace stagecraft::drawing {

inline constexpr double kTextSize = 11;
inline constexpr double kSmallestName = 5;
inline constexpr double kLine = 16;    ///< distance between lines of text
inline constexpr double kMargin = 12;  ///< distance of text from the edges
inline constexpr double kSwatch = 11;
inline constexpr double kTitleGrowth = 1.25;  ///< size of the title relative to other text
inline constexpr std::string_view kIdleColor = "#f3f5f8";

/// Box is one task of an entry with its position; the tasks of a group are stacked.
struct Box {
  const Cell* cell = nullptr;
  Task task;
  std::size_t panel = 0;
  std::size_t row = 0;
  std::size_t column = 0;
  double begin = 0;  ///< columns, or the timeline's own unit
  double end = 0;
  std::size_t member = 0;  ///< of the cell's tasks
  bool surplus = false;    ///< does nothing
  /// The number, from 1, among the updates at the end of a row that take no time. They have boxes
  /// behind that time.
  int late_update = 0;
};

/// Band holds the rows of a panel.
struct Band {
  std::string name;    ///< of the panel, or its end if the picture is too narrow for all of it
  double heading = 0;  ///< base line of the panel's name
  double top = 0;      ///< of the first row
  double bottom = 0;   ///< of the last row
  double length = 0;   ///< of the rows
};

struct Tick {
  double at = 0;  ///< columns, or the timeline's own unit
  std::string label;
};

struct Point {
  double x = 0;
  double y = 0;
};

/// Arrow is a curved line from one box to another, so that opposite arrows do not overlap; in
/// pixels.
struct Arrow {
  Point from;
  Point bow;  ///< control point of the quadratic curve
  Point to;
};

/// LegendItem holds swatches, then text, starting at `x` in line `line` of the legend.
struct LegendItem {
  std::vector<std::string> colors;
  std::string text;
  double x = 0;
  std::size_t line = 0;

  [[nodiscard]] double text_x() const;
};

struct Figure {
  /// Requires: all panels have timelines, or none; `panels` outlive the figure.
  /// Errors: those of render_svg().
  Figure(std::span<const Panel> panels, const PictureOptions& options);

  [[nodiscard]] double x(double at) const { return left + at * scale; }
  [[nodiscard]] double y(std::size_t panel, std::size_t row) const {
    return bands[panel].top + row_height * static_cast<double>(row);
  }
  /// Returns the lower end of all rows.
  [[nodiscard]] double bottom() const { return bands.back().bottom; }
  [[nodiscard]] double left_of(const Box& box) const;
  [[nodiscard]] double width_of(const Box& box) const;
  [[nodiscard]] double height_of(const Box& box) const;
  [[nodiscard]] double top_of(const Box& box) const;
  /// Returns the text in a box: its task's name, or only its microbatch if the names of its kind do
  /// not fit, or nothing.
  [[nodiscard]] std::string name_in(const Box& box) const;
  /// Returns arrows from task to task of a panel's first cycle; of a long cycle the first arrows.
  [[nodiscard]] std::vector<Arrow> arrows(std::size_t panel) const;
  /// Returns one box for each cell that a violation names.
  [[nodiscard]] std::vector<Box> marked() const;
  [[nodiscard]] std::size_t legend_lines() const {
    return legend.empty() ? 0 : legend.back().line + 1;
  }

  std::span<const Panel> panels;
  std::vector<Box> boxes;
  TaskColors colors;
  bool timed = false;
  bool named = true;        ///< boxes have names
  bool idle = false;        ///< rows have idle shares
  std::string axis_name;    ///< the unit of its numbers
  double length = 0;        ///< of the axis
  double scale = 1;         ///< pixels per unit of it
  double left = 0;          ///< left end of the axis
  double axis = 0;          ///< its height
  double row_height = 0;    ///< gap included
  double late_width = 0;    ///< of an update that takes no time
  double room_behind = 0;   ///< behind the axis, for these updates
  double width = 0;         ///< of the whole picture
  std::vector<Band> bands;  ///< by panel
  double name_size = kTextSize;
  /// Widths of the widest name and of the widest number of a microbatch, by kind, at size 1.
  std::map<CellKind, double> widest_name, widest_number;
  std::vector<std::string> title;  ///< lines
  std::vector<Tick> ticks;
  std::vector<LegendItem> legend;
  std::vector<std::string> notes;  ///< lines below the legend
};

/// Returns the largest width in pixels of the text at that size in any usual sans-serif font.
[[nodiscard]] double text_width(std::string_view text, double size = kTextSize);

/// Returns the text, or "..." and its end if it is wider than `width` pixels: the ends of names say
/// most.
[[nodiscard]] std::string ending(std::string_view text, double width);

/// Breaks the text at blanks into lines of at most `width` pixels.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width);

}  // namespace stagecraft::drawing
