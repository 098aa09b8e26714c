/// dag_text prints a DAG for people: how many nodes of each kind there are, and for every rank list
/// its streams and the list that it issues. `times`: null if they are not known.
#pragma once

#include <string>

#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/scheduler/dag/timeline/dag_timeline.h"

namespace stagecraft::tools {

[[nodiscard]] std::string dag_text(const IssuedDag& issued, const DagTimeline* times = nullptr);

}  // namespace stagecraft::tools
