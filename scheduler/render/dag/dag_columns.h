/// dag_columns chooses the columns of the nodes in a picture of a DAG: DPI-1 and DPI-2
/// (dag_figure.h). Private to render/. Pure.
#pragma once

#include <vector>

#include "stagecraft/scheduler/dag/issue/issue.h"

namespace stagecraft::drawing {

/// Returns the columns by node, from 0.
[[nodiscard]] std::vector<int> dag_columns(const IssuedDag& issued);

}  // namespace stagecraft::drawing
