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
  if (cell.is_group() && group) {
    return *group;
  }
  double total = 0;
  for (const Task& task : cell.tasks()) {
    total +=
        (task.stage.index() < stages.size() ? stages[task.stage.index()] : usual).of(task.kind);
  }
  return total;
}

double CostModel::transfer_between(StageId producer, StageId consumer) const {
  const auto found = transfers.find({producer.value, consumer.value});
  return found == transfers.end() ? transfer : found->second;
}

CostModel CostModel::unit() {
  CostModel model;
  model.usual = {
      .forward = 1, .backward = 1, .backward_input = 1, .backward_weight = 1, .update = 1};
  model.group = 1;
  return model;
}

}  // namespace stagecraft
