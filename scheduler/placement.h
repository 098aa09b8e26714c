/// Placement: which row runs a stage.
///
/// Inferred from any schedule, also one that breaks rules; read by rules, the simulator and Layout,
/// which says what ranks a row stands for. A value; any thread may read.
/// PM-1: a stage has at most one row. Where a schedule puts it on several, the row with most of its
/// tasks (the upper one of equals) is the stage's, and rule V07 names the tasks elsewhere.
#pragma once

#include <optional>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft {

class Placement {
 public:
  /// `stages`: how many to place; tasks of other stages are passed over.
  [[nodiscard]] static Placement of(const Schedule& schedule, int stages);

  /// The stage's row, or nothing when no row runs it.
  [[nodiscard]] std::optional<int> row(StageId stage) const;
  /// The row's stages in ascending order.
  [[nodiscard]] std::vector<StageId> stages(int row) const;

 private:
  std::vector<int> row_of_;  // by stage; -1 where it runs nowhere
};

}  // namespace stagecraft
