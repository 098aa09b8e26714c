#include "stagecraft/tools/dag/dag_output.h"

#include <optional>
#include <string>

#include "stagecraft/scheduler/render/dag/dag_svg.h"
#include "stagecraft/scheduler/render/html/dag_page.h"
#include "stagecraft/tools/common/output.h"
#include "stagecraft/tools/dag/dag_json.h"
#include "stagecraft/tools/dag/dag_text.h"

namespace stagecraft::tools {

void write_dag(const IssuedDag& issued, const DagShowOptions& o, Console& console) {
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
    const auto times = o.costs ? std::optional(timeline_of(issued, *o.costs)) : std::nullopt;
    const DagTimeline* const shown = times ? &*times : nullptr;
    write_output(o.output, o.json ? dag_json(issued, shown) : dag_text(issued, shown), console);
  }
}

}  // namespace stagecraft::tools
