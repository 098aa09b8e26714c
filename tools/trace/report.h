/// The report on planned against measured, as text for people and as JSON for programs.
///
/// `stagecraft train` closes with it, `stagecraft trace compare` is about it. What is compared by
/// row is told by rank: a row without a task is no rank's.
///
/// The header of the run says whose times the plan was simulated with: costs from before the run,
/// or none, and then the run's own. A plan of these says what order and data ask of them; only one
/// of costs from before is a prediction.
#pragma once

#include <cstddef>
#include <string>

#include "stagecraft/scheduler/comparison.h"
#include "stagecraft/scheduler/layout.h"
#include "stagecraft/scheduler/measurements.h"
#include "stagecraft/tools/trace/trace_file.h"

namespace stagecraft::tools {

/// Bubble and makespan, then how each rank spent it, planned and measured, then what a step takes
/// besides. Lines of at most 80 columns. Ends in a newline.
[[nodiscard]] std::string comparison_text(const Comparison& comparison,
                                          const Measurements& measured,
                                          const Layout& layout,
                                          const TraceHeader& run);

/// The `limit` cells that are furthest from their plan. Ends in a newline.
[[nodiscard]] std::string cells_text(const Comparison& comparison,
                                     const Layout& layout,
                                     std::size_t limit);

/// One object; seconds. With the `limit` cells that are furthest from their plan, if any.
[[nodiscard]] std::string comparison_json(const Comparison& comparison,
                                          const Measurements& measured,
                                          const Layout& layout,
                                          const TraceHeader& run,
                                          std::size_t limit);

}  // namespace stagecraft::tools
