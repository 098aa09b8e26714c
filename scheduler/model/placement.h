/// Placement maps each stage to the row that runs it.
///
/// It is inferred from any schedule, even from one that breaks rules. Rules, the simulator and
/// Layout, which maps rows to ranks, read it. A value; any thread may read.
/// PM-1: a stage has at most one row. If a schedule puts it on several rows, the row with most of
///       its tasks (the first of equals) is the stage's row, and rule V07 names the tasks on other
///       rows.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

class Placement {
 public:
  /// `stages`: the number of stages to place; tasks of other stages are ignored.
  [[nodiscard]] static Placement of(const Schedule& schedule, int stages);

  /// Returns the stage's row, or nothing if no row runs it.
  [[nodiscard]] std::optional<int> row(StageId stage) const;
  /// Returns the row's stages in ascending order.
  [[nodiscard]] std::vector<StageId> stages(int row) const;

 private:
  std::vector<int> row_of_;  // by stage; -1 if no row runs it
};

}  // namespace stagecraft
