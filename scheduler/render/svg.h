/// The grid as an SVG picture: one line per row, one box per task, its name inside and on hover,
/// under a title and an axis, over a legend.
///
/// Colour says the stage or what PictureOptions choose, shade the kind (backwards darker, weight
/// halves lighter), a red frame a violation; a task that does nothing is an empty box. With a
/// timeline the boxes lie in time instead of in columns and each row ends with its idle share.
/// Self-contained: no script, no font, no link. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "stagecraft/scheduler/render/task_colours.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

/// Pictures of more entries than this help nobody and are refused.
inline constexpr std::size_t kMaxSvgEntries = 100'000;
/// In pixels: the legend fits no narrower picture, and programs that show one no wider.
inline constexpr double kNarrowestPicture = 320;
inline constexpr double kWidestPicture = 16'000;

struct PictureOptions {
  std::string title;  ///< none where empty
  ColourBy colour_by = ColourBy::Stage;
  /// Of the whole picture in CSS pixels, 96 to the inch; absent: as wide as names need.
  /// Requires: kNarrowestPicture to kWidestPicture.
  std::optional<double> width;
};

/// Returns the entries at their simulated times; without a timeline the columns of an array, or the
/// positions of a list. Requires: `timeline`, where given, is the schedule's own.
/// Errors: ScheduleParameter for more than kMaxSvgEntries entries.
[[nodiscard]] std::string render_svg(const Schedule& schedule,
                                     const StageGraph& graph,
                                     const Timeline* timeline,
                                     const std::vector<Violation>& violations = {},
                                     const PictureOptions& options = {});

}  // namespace stagecraft
