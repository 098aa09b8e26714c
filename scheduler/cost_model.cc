#include "stagecraft/scheduler/cost_model.h"

namespace stagecraft {

double Durations::of(CellKind kind) const {
  switch (kind) {
    case CellKind::Forward:
      return forward;
    case CellKind::Backward:
      return backward;
    case CellKind::BackwardInput:
      return backward_input;
    case CellKind::BackwardWeight:
      return backward_weight;
    case CellKind::Update:
      return update;
    case CellKind::Idle:
      break;
  }
  return 0;
}

double CostModel::duration(const Cell& cell) const {
  const auto tasks = cell.tasks();
  if (cell.is_group()) {
    if (tasks.size() == 2 && !groups.empty()) {
      const int a = tasks[0].stage.value;
      const int b = tasks[1].stage.value;
      for (const Pair& pair : {Pair{a, b}, Pair{b, a}}) {
        if (const auto found = groups.find(pair); found != groups.end()) {
          return found->second;
        }
      }
    }
    if (group) {
      return *group;
    }
  }
  double total = 0;
  for (const Task& task : tasks) {
    total +=
        (task.stage.index() < stages.size() ? stages[task.stage.index()] : usual).of(task.kind);
  }
  return total;
}

double CostModel::transfer(Pair edge, int from_row, int to_row) const {
  if (from_row == to_row) {
    return 0;
  }
  const auto size = edge_bytes.find(edge);
  const auto way = links.find({from_row, to_row});
  return (way == links.end() ? link : way->second)
      .time_of(size == edge_bytes.end() ? bytes : size->second);
}

CostModel CostModel::unit() {
  CostModel model;
  model.usual = {
      .forward = 1, .backward = 1, .backward_input = 1, .backward_weight = 1, .update = 1};
  model.group = 1;
  return model;
}

}  // namespace stagecraft
