#include "stagecraft/tools/schedule/report/difference.h"

#include <algorithm>
#include <utility>

#include "stagecraft/tools/schedule/input/cost_options.h"
#include "stagecraft/tools/schedule/report/verdict.h"

namespace stagecraft::tools {
namespace {

DifferentSide side_of(ScheduleFile read) {
  DifferentSide side{std::move(read), Schedule(Schedule::Form::List, {})};
  side.list = side.file.schedule.to_list();
  side.violations = violations_of(side.file).size();
  return side;
}

Costs weighed(Costs costs, double weight) {
  Durations& of_stage = costs.stages.usual;
  for (double* time : {&of_stage.forward,
                       &of_stage.backward,
                       &of_stage.backward_input,
                       &of_stage.backward_weight}) {
    *time *= weight;
  }
  return costs;
}

void simulate_side(DifferentSide& side, const Costs& costs) {
  if (side.violations == 0) {
    side.timeline = timeline_of(side.list, side.file.graph, weighed(costs, side.weight));
  }
}

/// Returns what differs outside the cells.
std::string beside(const ScheduleFile& a, const ScheduleFile& b) {
  if (a.graph.size() != b.graph.size() || a.graph.edges() != b.graph.edges() ||
      a.graph.replica_pairs() != b.graph.replica_pairs()) {
    return "their stage graphs differ";
  }
  if (a.graph.frozen() != b.graph.frozen()) {
    return "their frozen stages differ";
  }
  if (a.graph.microbatch_sizes() != b.graph.microbatch_sizes()) {
    return "their sizes of microbatches differ";
  }
  return a.schedule.microbatches() != b.schedule.microbatches()
             ? "their numbers of microbatches differ"
             : "";
}

const Schedule::Row& row_of(const DifferentSide& side, std::size_t r) {
  static const Schedule::Row none;
  return r < side.list.rows().size() ? side.list.rows()[r] : none;
}

std::string task_at(const Schedule::Row& row, std::size_t position) {
  return position < row.size() ? to_string(row[position]) : "(end)";
}

std::vector<DifferentRow> different_rows(const DifferentSide& a, const DifferentSide& b) {
  std::vector<DifferentRow> rows;
  const std::size_t count = std::max(a.list.rows().size(), b.list.rows().size());
  for (std::size_t r = 0; r < count; ++r) {
    const Schedule::Row& of_a = row_of(a, r);
    const Schedule::Row& of_b = row_of(b, r);
    if (of_a != of_b) {
      const auto in_a = std::ranges::mismatch(of_a, of_b).in1;
      const auto position = static_cast<std::size_t>(in_a - of_a.begin());
      rows.push_back({r, position, task_at(of_a, position), task_at(of_b, position)});
    }
  }
  return rows;
}

}  // namespace

int DifferentSide::model_stages() const {
  return file.graph.size() / std::max(file.graph.replicas(), 1);
}

double DifferentSide::in_flight(std::size_t row) const {
  return weight * timeline->rows[row].peak_in_flight;
}

Difference find_difference(ScheduleFile file_a,
                           ScheduleFile file_b,
                           const Costs& costs,
                           bool stated) {
  Difference found{.a = side_of(std::move(file_a)), .b = side_of(std::move(file_b))};
  found.bytes = knows_memory(costs);
  found.stated = stated;
  if (!stated) {
    const int stages_a = found.a.model_stages();
    const int stages_b = found.b.model_stages();
    const int fewer = std::min(stages_a, stages_b);
    found.a.weight = stages_a > 0 ? static_cast<double>(fewer) / stages_a : 1;
    found.b.weight = stages_b > 0 ? static_cast<double>(fewer) / stages_b : 1;
  }
  simulate_side(found.a, costs);
  simulate_side(found.b, costs);
  found.beside = beside(found.a.file, found.b.file);
  found.rows = different_rows(found.a, found.b);
  return found;
}

}  // namespace stagecraft::tools
