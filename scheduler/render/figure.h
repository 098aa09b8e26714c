/// Figure: where a printed picture of a schedule has its boxes, ticks and legend, whatever it is
/// written in.
///
///     title                       render_svg() and render_tikz() draw the same Figure; lengths are
///     axis   0    5    10         CSS pixels of 1/96 inch, y grows downwards
///     d0    [0F0][0F1]    [0B0]
///     legend, notes
///
/// FG-1: no text is wider than its cell: names are set smaller, down to kSmallestName, and left out
/// of cells where even that is too wide.
/// Private to render/. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/render/svg.h"
#include "stagecraft/scheduler/render/task_colours.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft::drawing {

inline constexpr double kTextSize = 11;
inline constexpr double kSmallestName = 6;
inline constexpr double kLine = 16;    ///< from one line of text to the next
inline constexpr double kMargin = 12;  ///< of text from the edges
inline constexpr double kSwatch = 11;
inline constexpr double kTitleGrowth = 1.25;  ///< of the title over other text
inline constexpr std::string_view kIdleColour = "#f3f5f8";

/// One task of an entry in place; those of a group lie above each other.
struct Box {
  const Cell* cell = nullptr;
  Task task;
  std::size_t row = 0;
  std::size_t column = 0;
  double begin = 0;  ///< columns, or the timeline's own unit
  double end = 0;
  std::size_t member = 0;  ///< of the cell's tasks
  bool surplus = false;    ///< does nothing
};

struct Tick {
  double at = 0;  ///< columns, or the timeline's own unit
  std::string label;
};

struct Point {
  double x = 0;
  double y = 0;
};

/// A bowed line from one box to another, so that there and back stay apart; in pixels.
struct Arrow {
  Point from;
  Point bow;  ///< of the quadratic curve between them
  Point to;
};

/// Swatches, then words, from `x` in line `line` of the legend.
struct LegendItem {
  std::vector<std::string> colours;
  std::string text;
  double x = 0;
  std::size_t line = 0;

  [[nodiscard]] double text_x() const;
};

struct Figure {
  /// Errors: as render_svg().
  Figure(const Schedule& schedule,
         const StageGraph& graph,
         const Timeline* timeline,
         const PictureOptions& options,
         double stretch = 1);

  [[nodiscard]] double x(double at) const { return left + at * scale; }
  [[nodiscard]] double y(std::size_t row) const {
    return top + row_height * static_cast<double>(row);
  }
  [[nodiscard]] double width_of(const Box& box) const;
  [[nodiscard]] double height_of(const Box& box) const;
  [[nodiscard]] double top_of(const Box& box) const;
  /// What a box bears: its task's name, or its microbatch alone where that is all that fits, or
  /// nothing.
  [[nodiscard]] std::string name_in(const Box& box) const;
  /// From task to task of a cycle; of a long one the first.
  [[nodiscard]] std::vector<Arrow> arrows(std::span<const Task> cycle) const;
  /// One box of each cell that a violation names.
  [[nodiscard]] std::vector<Box> marked(const std::vector<Violation>& violations) const;
  [[nodiscard]] std::size_t legend_lines() const {
    return legend.empty() ? 0 : legend.back().line + 1;
  }

  std::vector<Box> boxes;
  TaskColours colours;
  bool timed = false;
  std::string axis_name;  ///< what its numbers count
  double length = 0;      ///< of the axis
  double scale = 1;       ///< pixels per unit of it
  double left = 0;        ///< where the axis begins
  double top = 0;         ///< of the first row
  double row_height = 0;  ///< gap included
  double width = 0;       ///< of the whole picture
  double name_size = kTextSize;
  std::vector<std::string> title;  ///< lines
  std::vector<Tick> ticks;
  std::vector<LegendItem> legend;
  std::vector<std::string> notes;  ///< lines below the legend
};

/// The first cycle that a violation names.
[[nodiscard]] std::span<const Task> cycle_of(const std::vector<Violation>& violations);

/// Returns the most pixels that the text takes at that size in any usual sans-serif font.
[[nodiscard]] double text_width(std::string_view text, double size = kTextSize);

/// Breaks at blanks into lines of at most `width` pixels.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, double width);

}  // namespace stagecraft::drawing
