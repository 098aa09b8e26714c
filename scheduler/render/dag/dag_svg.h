/// render_dag_svg draws a training DAG as an SVG picture: a cluster for each rank list, a lane in
/// it for each stream, and nodes from left to right in the order in which the ranks issue them.
///
/// The color shows the stream, the shade the kind of a task, and the number in a corner the place
/// in the issue order. Solid lines are edges of data, dashed ones edges of order, and thick ones
/// transfers between rank lists. The file is self-contained: no script, no font, no link. Pure.
#pragma once

#include <string>

#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft {

/// Returns the picture. A node is a group with the id "node-N"; a line has the ids of its ends as
/// `data-from` and `data-to`.
/// Errors: ScheduleParameter for more than kMaxDrawnNodes nodes (dag_limits.h).
[[nodiscard]] std::string render_dag_svg(const IssuedDag& issued);

}  // namespace stagecraft
