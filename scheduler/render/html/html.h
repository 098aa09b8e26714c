/// render_html writes a schedule as one HTML file: the grid in simulated time or in columns, the
/// causes of each row's waits, the dependencies of each task, the violations, and the activations
/// that each row holds.
///
/// The file is self-contained: the page's parts (render/html/page/) are built into the library, the
/// schedule is embedded as JSON, and the page forbids itself all network access. A fragment of the
/// address selects the first view: `#select=1F3`, `#view=columns`, `#color=kind`, `#violation=0`,
/// `#theme=dark`, joined by `&`. Pure.
/// H-1: no text of the schedule, its stages or its title can end the element in which it is
///      embedded.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/render/html/html_limits.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft {

/// Returns the page. Without a timeline it shows only columns (positions of a list).
/// Requires: `timeline`, if given, is the schedule's own.
/// Errors: ScheduleParameter for more than kMaxHtmlEntries entries, or times that are not finite.
[[nodiscard]] std::string render_html(const Schedule& schedule,
                                      const StageGraph& graph,
                                      const Timeline* timeline,
                                      const std::vector<Violation>& violations = {},
                                      std::string_view title = "Schedule");

}  // namespace stagecraft
