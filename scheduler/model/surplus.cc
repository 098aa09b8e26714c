#include "stagecraft/scheduler/model/surplus.h"

#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/number_range.h"

namespace stagecraft {
namespace {

const char* reason(const Surplus& surplus, const StageGraph& graph) {
  return !graph.has_backward(surplus.stage)        ? "no backward"
         : surplus.kind == CellKind::BackwardInput ? "inputs need no gradient"
                                                   : "no weights to train";
}

}  // namespace

std::vector<Surplus> find_surplus(const Schedule& schedule, const StageGraph& graph) {
  std::map<std::pair<StageId, CellKind>, std::size_t> counts;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (graph.is_surplus(task)) {
          ++counts[{task.stage, task.kind}];
        }
      }
    }
  }
  std::vector<Surplus> all;
  for (const auto& [key, tasks] : counts) {
    all.push_back({key.first, key.second, tasks});
  }
  return all;
}

std::string to_string(const std::vector<Surplus>& surplus, const StageGraph& graph) {
  struct Group {
    std::vector<int> stages;
    std::size_t tasks = 0;
  };
  std::map<std::pair<std::string, CellKind>, Group> groups;
  std::size_t total = 0;
  for (const Surplus& s : surplus) {
    Group& group = groups[{reason(s, graph), s.kind}];
    group.stages.push_back(s.stage.value);
    group.tasks += s.tasks;
    total += s.tasks;
  }
  std::string text = fmt::format("{} task{} nothing", total, total == 1 ? " does" : "s do");
  const char* separator = ": ";
  for (const auto& [key, group] : groups) {
    text += fmt::format("{}{} {} of {} ({})",
                        std::exchange(separator, ", "),
                        group.tasks,
                        letter(key.second),
                        counted("stage", ranges_of(group.stages)),
                        key.first);
  }
  return text;
}

}  // namespace stagecraft
