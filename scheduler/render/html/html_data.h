/// html_data returns the JSON that the page of render_html() embeds.
///
///     {"title", "hash", "form", "stages", "microbatches", "share", "columns",
///      "names": {stage: name}, "edges": [[producer, consumer, owes a gradient]], "keeps": [stage],
///      "surplus": {stage: "BIW"}, "surplusText",                  // its backwards that do nothing
///      "colors": {"light": {"stage": ["#..."], "kind", "chunk", "microbatch"}, "dark", "counts"},
///                                                              // by place, then FBIWU
///      "chunks": [number among its device's stages],             // by stage
///      "rows": ["0F0 0F1 3 0B0"],                                 // a bare number: idle cells
///      "times": {"makespan", "rows": [{"starts", "ends", "waits", "transfers", "bytes",
///      "bytesAfter", ...}]}, "violations": [{"rule", "row", "column", "task", "message", "cycle",
///      "cells", "unmarked", "repair"}], "unlisted": violations beyond those}
///
/// Private to render/. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/simulate.h"

namespace stagecraft::drawing {

/// Returns JSON without a '<', so that a script element may contain it (H-1).
/// Errors: ScheduleParameter for a time that is not finite.
[[nodiscard]] std::string html_data(const Schedule& schedule,
                                    const StageGraph& graph,
                                    const Timeline* timeline,
                                    const std::vector<Violation>& violations,
                                    std::string_view title);

}  // namespace stagecraft::drawing
