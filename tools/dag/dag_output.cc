#include "stagecraft/tools/dag/dag_output.h"

#include <algorithm>
#include <optional>
#include <string>

#include "stagecraft/scheduler/render/dag/dag_svg.h"
#include "stagecraft/scheduler/render/html/dag_page.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/dag/dag_json.h"
#include "stagecraft/tools/dag/dag_text.h"
#include "stagecraft/tools/schedule/input/cost_options.h"

namespace stagecraft::tools {
namespace {

/// Returns the times of the nodes; none if they are not asked for, or not shown.
/// Errors: UsageArgument if they add up to more than any number holds.
std::optional<DagTimeline> times_of(const IssuedDag& issued,
                                    const DagShowOptions& o,
                                    Console& console) {
  if (!o.costs || !o.prints()) {
    return std::nullopt;
  }
  note_misfit(o.given.file, o.costs->costs, issued.dag.source.graph.size(), console);
  DagTimeline times = timeline_of(issued, *o.costs);
  double most = times.makespan;
  for (const DagTimeline::List& list : times.lists) {
    most = std::max(most, list.computing + list.communicating);
  }
  require_finite(most, times.lists.size());
  return times;
}

}  // namespace

void write_dag(const IssuedDag& issued, const DagShowOptions& o, Console& console) {
  const std::optional<DagTimeline> times = times_of(issued, o, console);
  const std::string svg = o.svg.empty() ? "" : render_dag_svg(issued);
  const std::string html =
      o.html.empty() ? "" : render_dag_page(issued, o.file == "-" ? "Training DAG" : o.file);
  if (!o.svg.empty()) {
    write_output(o.svg, svg, console);
  }
  if (!o.html.empty()) {
    write_output(o.html, html, console);
  }
  if (o.prints()) {
    const DagTimeline* const shown = times ? &*times : nullptr;
    write_output(o.output, o.json ? dag_json(issued, shown) : dag_text(issued, shown), console);
  }
}

}  // namespace stagecraft::tools
