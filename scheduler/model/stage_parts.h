/// StageParts tells how the stages of a program are divided where code runs on the driver.
///
///     stage          0    | 1
///     part           0    | 1    2        3           a schedule lists the stages,
///     on the driver  no   | no   matcher  no          ranks run the parts
///
/// The compiler makes it (cut/driver_parts.h); driver_row.h divides the tasks of a schedule by it.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

struct StagePart {
  StageId stage;           ///< that it is part of
  std::string stage_name;  ///< of that stage
  bool on_driver = false;
};

/// By part; the parts of a stage follow each other in the order of their forwards. Empty if no code
/// runs on the driver: each stage is its own part.
using StageParts = std::vector<StagePart>;

/// Returns the graph of the stages, given that of their parts. Requires: `parts` is not empty.
[[nodiscard]] StageGraph whole_stages(const StageGraph& graph, const StageParts& parts);

}  // namespace stagecraft
