#include "stagecraft/scheduler/model/placement.h"

namespace stagecraft {

Placement Placement::of(const Schedule& schedule, int stages) {
  // One pass per row with a counter per stage; counters are reset only where they were touched.
  const auto count = static_cast<std::size_t>(stages);
  Placement placement;
  placement.row_of_.assign(count, -1);
  std::vector<std::size_t> most(count, 0);
  std::vector<std::size_t> here(count, 0);
  std::vector<StageId> touched;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    touched.clear();
    for (const Cell& cell : schedule.rows()[r]) {
      for (const Task& task : cell.tasks()) {
        if (task.stage.value >= 0 && task.stage.value < stages && here[task.stage.index()]++ == 0) {
          touched.push_back(task.stage);
        }
      }
    }
    for (const StageId s : touched) {
      if (here[s.index()] > most[s.index()]) {
        most[s.index()] = here[s.index()];
        placement.row_of_[s.index()] = static_cast<int>(r);
      }
      here[s.index()] = 0;
    }
  }
  return placement;
}

std::optional<int> Placement::row(StageId stage) const {
  const int row = row_of_[stage.index()];
  return row < 0 ? std::nullopt : std::optional<int>(row);
}

std::vector<StageId> Placement::stages(int row) const {
  std::vector<StageId> list;
  for (std::size_t s = 0; s < row_of_.size(); ++s) {
    if (row_of_[s] == row) {
      list.emplace_back(s);
    }
  }
  return list;
}

}  // namespace stagecraft
