#include "stagecraft/scheduler/rules/parts/transfer.h"

#include <algorithm>

namespace stagecraft::rules {

bool lists_transfers(const ValidateOptions& options) {
  return std::ranges::any_of(options.communication,
                             [](const CommAction& action) { return is_transfer(action.kind); });
}

std::vector<Transfer> transfers_of(const RuleInput& in) {
  std::vector<Transfer> list;
  for_each_task(in, [&](const Entry& entry, const Task& task) {
    if (task.kind == CellKind::Update) {
      return;
    }
    const int to = static_cast<int>(&entry - in.tasks.entries().data());
    in.tasks.for_each_prerequisite(task, [&](const Task& made) {
      const int from = in.tasks.find(made);
      if (from != TaskGraph::kMissing && in.tasks.entry(from).row != entry.row) {
        list.push_back({made, task, from, to});
      }
    });
  });
  return list;
}

}  // namespace stagecraft::rules
