/// The grid as an SVG picture: one line per row, one box per task, its text inside and on hover.
///
/// Colour says the stage, shade the kind (backwards darker, weight halves lighter), a red frame a
/// violation; a task that does nothing is an empty box. With a timeline the boxes lie in time
/// instead of in columns and each row ends with its idle share. Self-contained: no script, no font,
/// no link. Pure.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/simulate.h"
#include "stagecraft/scheduler/stage_graph.h"
#include "stagecraft/scheduler/validate.h"

namespace stagecraft {

/// Pictures of more entries than this help nobody and are refused.
inline constexpr std::size_t kMaxSvgEntries = 100'000;

/// Returns the entries at their simulated times; without a timeline the columns of an array, or the
/// positions of a list. Requires: `timeline`, where given, is the schedule's own.
/// Errors: ScheduleParameter for more than kMaxSvgEntries entries.
[[nodiscard]] std::string render_svg(const Schedule& schedule,
                                     const StageGraph& graph,
                                     const Timeline* timeline,
                                     const std::vector<Violation>& violations = {});

}  // namespace stagecraft
