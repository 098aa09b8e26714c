/// render_svg draws the grid as an SVG picture: one line per row, one box per task, its name inside
/// and on hover, with a title, an axis and a legend.
///
/// The color shows the stage or the choice of PictureOptions, the shade the kind (backwards darker,
/// weight halves lighter), a red frame a violation. A task that does nothing is an empty box. With
/// a timeline, the boxes are placed by time instead of columns, and each row ends with its idle
/// share. Self-contained: no script, no font, no link. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/task_colors.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Pictures of more entries are of no use and are refused.
inline constexpr std::size_t kMaxSvgEntries = 100'000;
/// In pixels. A narrower picture has no room for the legend; programs cannot show a wider one.
inline constexpr double kNarrowestPicture = 320;
inline constexpr double kWidestPicture = 16'000;

struct PictureOptions {
  std::string title;  ///< empty: no title
  ColourBy colour_by = ColourBy::Stage;
  /// Width of the whole picture in CSS pixels, 96 to the inch; absent: as wide as the names need.
  /// Requires: kNarrowestPicture to kWidestPicture.
  std::optional<double> width;
};

/// Draws the entries at their simulated times; without a timeline at the columns of an array, or
/// the positions of a list. Requires: `timeline`, if given, is the schedule's own.
/// Errors: ScheduleParameter for more than kMaxSvgEntries entries.
[[nodiscard]] std::string render_svg(const Schedule& schedule,
                                     const StageGraph& graph,
                                     const Timeline* timeline,
                                     const std::vector<Violation>& violations = {},
                                     const PictureOptions& options = {});

}  // namespace stagecraft
