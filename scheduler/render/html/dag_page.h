/// render_dag_page writes a training DAG as one HTML file: the picture of render_dag_svg(), and
/// beside it the details of the node that was clicked, its operators included.
///
/// The file is self-contained like the schedule's page (html.h). It is made of
/// render/html/dag_page/. `#node=N` selects a node, `#theme=dark` the dark scheme. Pure.
#pragma once

#include <string>
#include <string_view>

#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft {

/// Returns the page. Errors: those of render_dag_svg().
[[nodiscard]] std::string render_dag_page(const IssuedDag& issued, std::string_view title);

}  // namespace stagecraft
