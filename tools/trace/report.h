/// report writes planned against measured times, as text for people and as JSON for programs.
///
/// `stagecraft train` ends with its summary, or with `--report` with all of it, and `stagecraft
/// trace compare` prints it. It reports values of
/// rows by rank: a row without a task belongs to no rank.
///
/// The header of the run names the costs with which the plan was simulated: costs from before the
/// run, or, without them, the run's own. A plan with its own costs shows the effect of order and
/// data; only a plan with costs from before is a prediction.
#pragma once

#include <cstddef>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/scheduler/measured/comparison.h"
#include "stagecraft/scheduler/measured/measurements.h"
#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tools {

/// Returns bubble and makespan, then the planned and measured uses of each rank's time, then the
/// time of a step outside tasks. Lines have at most 80 columns. Ends in a newline.
[[nodiscard]] std::string comparison_text(const Comparison& comparison,
                                          const Measurements& measured,
                                          const Layout& layout,
                                          const TraceHeader& run);

/// Returns the same in a few lines: makespan, bubble with its largest causes, and a step outside
/// tasks. Lines have at most 80 columns. Ends in a newline.
[[nodiscard]] std::string comparison_summary(const Comparison& comparison,
                                             const Measurements& measured,
                                             const Layout& layout,
                                             const TraceHeader& run);

/// Returns the `limit` cells that are furthest from their plan. Ends in a newline.
[[nodiscard]] std::string cells_text(const Comparison& comparison,
                                     const Layout& layout,
                                     std::size_t limit);

/// Returns the contents of one object (command_json.h), with the `limit` cells that are furthest
/// from their plan, if any.
[[nodiscard]] nlohmann::ordered_json comparison_json(const Comparison& comparison,
                                                     const Measurements& measured,
                                                     const Layout& layout,
                                                     const TraceHeader& run,
                                                     std::size_t limit);

}  // namespace stagecraft::tools
