/// render_svg draws schedules as an SVG picture: one line per row, one box per task, its name
/// inside and on hover, with a title, an axis and a legend.
///
/// The color shows the stage or the choice of PictureOptions. The shade shows the kind (backwards
/// darker, weight halves lighter). A red frame shows a violation. A task that does nothing is an
/// empty box. With a timeline, the boxes are placed by time instead of columns, and each row ends
/// with its idle share. The file is self-contained: no script, no font, no link. Pure.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/panel.h"
#include "stagecraft/scheduler/render/picture_options.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Draws the panels one above the other on one axis, with one legend: the entries at their
/// simulated times, or without timelines at the columns of an array, or the positions of a list.
/// Requires: at least one panel; all have timelines, or none.
/// Errors: ScheduleParameter for more than kMaxSvgEntries entries.
[[nodiscard]] std::string render_svg(std::span<const Panel> panels,
                                     const PictureOptions& options = {});

/// Returns the size of the names in the boxes, in points (1/72 inch); nothing if no box has one.
/// Requires and errors: those of render_svg().
[[nodiscard]] std::optional<double> points_of_names(std::span<const Panel> panels,
                                                    const PictureOptions& options);

/// Draws one schedule. Requires: `timeline`, if given, is the schedule's own.
[[nodiscard]] std::string render_svg(const Schedule& schedule,
                                     const StageGraph& graph,
                                     const Timeline* timeline,
                                     const std::vector<Violation>& violations = {},
                                     const PictureOptions& options = {});

}  // namespace stagecraft
