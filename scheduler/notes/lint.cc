#include "stagecraft/scheduler/notes/lint.h"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/scheduler/model/surplus.h"
#include "stagecraft/scheduler/rules/validate.h"
#include "stagecraft/scheduler/simulate/to_array.h"

namespace stagecraft {
namespace {

using LintNotes = std::vector<LintNote>;

std::vector<int> columns_of(const Schedule::Row& row) {
  std::vector<int> columns;
  for (std::size_t c = 0; c < row.size(); ++c) {
    if (!row[c].idle()) {
      columns.push_back(static_cast<int>(c));
    }
  }
  return columns;
}

void late_cells(const Schedule& schedule, const StageGraph& graph, LintNotes& found) {
  if (schedule.form() == Schedule::Form::List) {
    return;
  }
  const Schedule earliest = to_array(schedule, graph);
  int late = 0;
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const std::vector<int> here = columns_of(schedule.rows()[r]);
    const std::vector<int> could = columns_of(earliest.rows()[r]);
    for (std::size_t i = 0; i < here.size(); ++i) {
      late += here[i] > could[i] ? 1 : 0;
    }
  }
  if (late > 0) {
    found.push_back(
        {"late-cells",
         fmt::format("{} later than the order of {} and the data require; the schedule has {} "
                     "columns instead of {}, and a list gets its earliest columns again",
                     late == 1 ? "a cell stands" : fmt::format("{} cells stand", late),
                     late == 1 ? "its row" : "their rows",
                     schedule.columns(),
                     earliest.columns())});
  }
}

void idle_rows(const Schedule& schedule, const StageGraph&, LintNotes& found) {
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    if (std::ranges::all_of(schedule.rows()[r], &Cell::idle)) {
      found.push_back({"idle-rows", fmt::format("row {} has no task, so no rank runs it", r)});
    }
  }
}

void microbatch_order(const Schedule& schedule, const StageGraph& graph, LintNotes& found) {
  for (const Violation& v : validate(schedule, graph, {.microbatch_order = true})) {
    found.push_back({"microbatch-order", v.message});
  }
}

/// Returns the kinds of backwards of each stage.
std::map<StageId, std::set<CellKind>> backwards_of(const Schedule& schedule) {
  std::map<StageId, std::set<CellKind>> kinds;
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        if (task.kind == CellKind::Backward || task.kind == CellKind::BackwardInput) {
          kinds[task.stage].insert(task.kind);
        }
      }
    }
  }
  return kinds;
}

void mixed_backwards(const Schedule& schedule, const StageGraph&, LintNotes& found) {
  std::vector<int> stages;
  for (const auto& [stage, kinds] : backwards_of(schedule)) {
    if (kinds.size() > 1) {
      stages.push_back(stage.value);
    }
  }
  if (!stages.empty()) {
    found.push_back({"mixed-backwards",
                     fmt::format("stage{} {} {} whole backwards for some microbatches and halves "
                                 "for others",
                                 stages.size() == 1 ? "" : "s",
                                 fmt::join(stages, ", "),
                                 stages.size() == 1 ? "has" : "have")});
  }
}

bool is_half_of(const Cell& input, const Cell& weight) {
  return !input.is_group() && !weight.is_group() && !input.idle() && !weight.idle() &&
         input.tasks()[0].kind == CellKind::BackwardInput &&
         weight.tasks()[0] ==
             Task{CellKind::BackwardWeight, input.tasks()[0].stage, input.tasks()[0].microbatch};
}

/// Reports only if every half is joined: a schedule that splits joins some halves where nothing is
/// to be gained.
void joined_halves(const Schedule& schedule, const StageGraph&, LintNotes& found) {
  int together = 0;
  int all = 0;
  const Schedule list = schedule.to_list();
  for (const Schedule::Row& row : list.rows()) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (const Task& task : row[i].tasks()) {
        all += task.kind == CellKind::BackwardInput ? 1 : 0;
      }
      together += i + 1 < row.size() && is_half_of(row[i], row[i + 1]) ? 1 : 0;
    }
  }
  if (all > 0 && together == all) {
    found.push_back({"joined-halves",
                     "each W runs directly after its I; one B in place of both does the same"});
  }
}

void surplus(const Schedule& schedule, const StageGraph& graph, LintNotes& found) {
  if (const auto nothing = find_surplus(schedule, graph); !nothing.empty()) {
    found.push_back({"surplus", to_string(nothing, graph)});
  }
}

}  // namespace

std::vector<LintNote> lint_notes(const Schedule& schedule, const StageGraph& graph) {
  LintNotes found;
  for (const auto check :
       {&late_cells, &idle_rows, &microbatch_order, &mixed_backwards, &joined_halves, &surplus}) {
    check(schedule, graph, found);
  }
  return found;
}

}  // namespace stagecraft
