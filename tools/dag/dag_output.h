/// dag_output writes a DAG in the forms that the options of `stagecraft dag show` name.
#pragma once

#include "stagecraft/scheduler/dag/issue/issue.h"
#include "stagecraft/tools/common/console.h"
#include "stagecraft/tools/dag/show_options.h"

namespace stagecraft::tools {

/// Writes pictures, text or JSON.
/// Errors: ScheduleParameter for a DAG that is too large for a picture, and UsageArgument for times
/// that add up to more than any number holds, before anything is written; UsageFile for output that
/// cannot be written.
void write_dag(const IssuedDag& issued, const DagShowOptions& options, Console& console);

}  // namespace stagecraft::tools
