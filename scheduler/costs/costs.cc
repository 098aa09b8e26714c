#include "stagecraft/scheduler/costs/costs.h"

#include <algorithm>
#include <array>

namespace stagecraft {

double Durations::of(CellKind kind) const {
  switch (kind) {
    case CellKind::Forward:
      return forward;
    case CellKind::Backward:
      return recompute + backward;
    case CellKind::BackwardInput:
      return recompute + backward_input;
    case CellKind::BackwardWeight:
      return backward_weight;
    case CellKind::Update:
      return update;
    case CellKind::Idle:
      break;
  }
  return 0;
}

Durations Durations::at_speed(double speed) const {
  return {.forward = forward / speed,
          .backward = backward / speed,
          .backward_input = backward_input / speed,
          .backward_weight = backward_weight / speed,
          .update = update / speed,
          .recompute = recompute / speed};
}

const Durations& StageCosts::of_stage(StageId stage) const {
  return stage.index() < each.size() ? each[stage.index()] : usual;
}

double StageCosts::duration(const Task& task, const StageGraph& graph) const {
  const Durations& durations = of_stage(task.stage);
  const bool does_all = task.kind == CellKind::BackwardWeight && !columns &&
                        graph.is_surplus({CellKind::BackwardInput, task.stage, task.microbatch});
  return durations.of(task.kind) + (does_all ? durations.of(CellKind::BackwardInput) : 0);
}

double StageCosts::duration(const Cell& cell, const StageGraph& graph) const {
  std::array<int, 2> pair{};  // the stages of the first tasks that do something
  std::size_t working = 0;
  double total = 0;
  for (const Task& task : cell.tasks()) {
    if (columns || !graph.is_surplus(task)) {
      if (working < pair.size()) {
        pair[working] = task.stage.value;
      }
      ++working;
      total += duration(task, graph);
    }
  }
  if (working < 2) {
    return total;
  }
  if (working == 2 && !groups.empty()) {
    for (const Pair& stages_of_both : {Pair{pair[0], pair[1]}, Pair{pair[1], pair[0]}}) {
      if (const auto found = groups.find(stages_of_both); found != groups.end()) {
        return found->second;
      }
    }
  }
  return group.value_or(total);
}

Link slower(const Link& one, const Link& other) {
  return {.latency = std::max(one.latency, other.latency),
          .bandwidth = std::min(one.bandwidth, other.bandwidth)};
}

const Link& LinkCosts::between(int from_row, int to_row, const Link& otherwise) const {
  const auto found = each.find({from_row, to_row});
  return found == each.end() ? otherwise : found->second;
}

double LinkCosts::transfer(Pair edge, int from_row, int to_row) const {
  if (from_row == to_row) {
    return 0;
  }
  const auto size = edge_bytes.find(edge);
  return between(from_row, to_row).time_of(size == edge_bytes.end() ? bytes : size->second);
}

Costs Costs::unit() {
  Costs costs;
  costs.stages.usual = {
      .forward = 1, .backward = 1, .backward_input = 1, .backward_weight = 1, .update = 1};
  costs.stages.group = 1;
  costs.stages.columns = true;
  return costs;
}

}  // namespace stagecraft
