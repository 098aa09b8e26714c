#include "stagecraft/scheduler/rules/repair/mistyped.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/place_text.h"
#include "stagecraft/scheduler/model/placement.h"
#include "stagecraft/scheduler/model/task_graph.h"

namespace stagecraft {
namespace {

constexpr std::size_t kMostReported = 20;

/// The tasks of one stage and kind.
struct Tasks {
  std::map<int, std::vector<const Entry*>> places;  ///< by microbatch
};

/// Returns whether the stage has none of the kinds that could stand for this one's microbatch.
bool lacks(const TaskGraph& tasks, CellKind kind, StageId stage, Microbatch m) {
  const auto has = [&](CellKind other) { return tasks.has(other, stage, m); };
  switch (kind) {
    case CellKind::Forward:
      return !has(kind);
    case CellKind::Backward:
      return !has(kind) && !has(CellKind::BackwardInput) && !has(CellKind::BackwardWeight);
    case CellKind::BackwardInput:
    case CellKind::BackwardWeight:
      return !has(kind) && !has(CellKind::Backward);
    default:
      return false;
  }
}

/// Returns the one microbatch that appears twice; nothing if there are several, or if it appears
/// more often.
std::optional<int> only_double(const Tasks& of) {
  std::optional<int> found;
  for (const auto& [microbatch, places] : of.places) {
    if (places.size() > 1) {
      if (found || places.size() > 2) {
        return std::nullopt;
      }
      found = microbatch;
    }
  }
  return found;
}

std::optional<int> only_missing(const TaskGraph& tasks, CellKind kind, StageId stage) {
  std::optional<int> found;
  for (Microbatch m; m.value < tasks.microbatches(stage); ++m.value) {
    if (lacks(tasks, kind, stage, m)) {
      if (found) {
        return std::nullopt;
      }
      found = m.value;
    }
  }
  return found;
}

std::map<std::pair<StageId, CellKind>, Tasks> by_stage_and_kind(const TaskGraph& tasks) {
  std::map<std::pair<StageId, CellKind>, Tasks> all;
  for (const Entry& entry : tasks.entries()) {
    for (const Task& task : entry.cell->tasks()) {
      if (tasks.in_range(task) && task.kind != CellKind::Update) {
        all[{task.stage, task.kind}].places[task.microbatch.value].push_back(&entry);
      }
    }
  }
  return all;
}

/// A task whose number no other one of its stage has.
struct Stray {
  const Entry* entry = nullptr;
  Task task;
};

/// Returns the only task of a stage or microbatch that does not exist, or of an undeclared last
/// microbatch; nothing if there are several.
std::optional<Stray> only_stray(const TaskGraph& tasks, bool microbatches_declared) {
  std::map<int, int> of_microbatch;  // the number of its tasks
  const auto visit_all = [&](auto&& visit) {
    for (const Entry& entry : tasks.entries()) {
      for (const Task& task : entry.cell->tasks()) {
        if (task.kind != CellKind::Update && task.kind != CellKind::Idle) {
          visit(entry, task);
        }
      }
    }
  };
  visit_all([&](const Entry&, const Task& task) { ++of_microbatch[task.microbatch.value]; });
  const auto is_stray = [&](const Task& task) {
    const int number = task.microbatch.value;
    const bool last = !microbatches_declared && number > 0 &&
                      number == of_microbatch.rbegin()->first && of_microbatch[number] == 1;
    return last || !tasks.in_range(task);
  };
  std::vector<Stray> found;
  visit_all([&](const Entry& entry, const Task& task) {
    if (is_stray(task)) {
      found.push_back({&entry, task});
    }
  });
  return found.size() == 1 ? std::optional(found.front()) : std::nullopt;
}

Schedule without(const Schedule& schedule, const Stray& stray) {
  std::vector<Schedule::Row> rows = schedule.rows();
  Cell& cell = rows.at(static_cast<std::size_t>(stray.entry->row))
                   .at(static_cast<std::size_t>(stray.entry->column));
  std::vector<Task> tasks(cell.tasks().begin(), cell.tasks().end());
  tasks.erase(std::ranges::find(tasks, stray.task));
  cell = tasks.empty() ? Cell() : tasks.size() == 1 ? Cell(tasks.front()) : Cell(std::move(tasks));
  return Schedule(schedule.form(), std::move(rows), schedule.headers());
}

/// Returns the microbatches of which there are tasks: unlike Schedule::microbatches(), also those
/// without a forward, which may be the missing one.
int microbatches_with_tasks(const Schedule& schedule, const StageGraph& graph) {
  int count = schedule.microbatches();
  for (const Schedule::Row& row : schedule.rows()) {
    for (const Cell& cell : row) {
      for (const Task& task : cell.tasks()) {
        count = std::max(count, (task.microbatch.value + 1) * graph.replicas());
      }
    }
  }
  return count;
}

/// Returns the only task of the kind that the stages of the row lack.
std::optional<Task> only_missing_on(int row,
                                    CellKind kind,
                                    const Schedule& schedule,
                                    const StageGraph& graph) {
  const TaskGraph tasks(schedule.rows(), graph, microbatches_with_tasks(schedule, graph));
  std::optional<Task> found;
  for (const StageId stage : Placement::of(schedule, graph.size()).stages(row)) {
    if (kind != CellKind::Forward && !graph.has_backward(stage)) {
      continue;
    }
    for (Microbatch m; m.value < tasks.microbatches(stage); ++m.value) {
      if (lacks(tasks, kind, stage, m)) {
        if (found) {
          return std::nullopt;
        }
        found = Task{kind, stage, m};
      }
    }
  }
  return found;
}

std::optional<Mistyped> find_stray(const Schedule& schedule,
                                   const StageGraph& graph,
                                   const TaskGraph& tasks) {
  const auto stray = only_stray(tasks, schedule.headers().microbatches.has_value());
  if (!stray) {
    return std::nullopt;
  }
  const Entry& entry = *stray->entry;
  const auto meant = only_missing_on(entry.row, stray->task.kind, without(schedule, *stray), graph);
  if (!meant) {
    return std::nullopt;
  }
  const Mistyped mistyped{entry.row, entry.column, stray->task, *meant};
  const bool helps =
      validate(apply(schedule, mistyped), graph).size() < validate(schedule, graph).size();
  return helps ? std::optional(mistyped) : std::nullopt;
}

Violation alone(const Mistyped& mistyped, const Schedule& schedule) {
  const Task& found = mistyped.found;
  const bool of_stage = found.stage != mistyped.meant.stage;
  Violation v;
  v.rule = of_stage ? "V04" : "V05";
  v.message = fmt::format(
      "no other task is of {}, and {} is missing; write {}",
      of_stage
          ? fmt::format("stage {}", found.stage.value)
          : fmt::format("stage {} and microbatch {}", found.stage.value, found.microbatch.value),
      to_string(mistyped.meant),
      to_string(mistyped, schedule));
  v.cells = {{mistyped.row, mistyped.column}};
  return v;
}

Violation twice(const Mistyped& mistyped, const Schedule& schedule) {
  const auto [row, column] = *mistyped.other;
  Violation v;
  v.rule = "V08";
  v.message = fmt::format("{} is at {} and again here, and {} is missing; write {}",
                          to_string(mistyped.found),
                          place_text(schedule, row, column),
                          to_string(mistyped.meant),
                          to_string(mistyped, schedule));
  v.cells = {{mistyped.row, mistyped.column}, *mistyped.other};
  return v;
}

Violation violation_of(const Mistyped& mistyped, const Schedule& schedule) {
  Violation v = mistyped.other ? twice(mistyped, schedule) : alone(mistyped, schedule);
  v.row = mistyped.row;
  v.column = mistyped.column;
  v.task = mistyped.found;
  v.missing = to_string(mistyped.meant);
  v.mistyped = mistyped;
  return v;
}

}  // namespace

Schedule apply(const Schedule& schedule, const Mistyped& mistyped) {
  std::vector<Schedule::Row> rows = schedule.rows();
  Cell& cell =
      rows.at(static_cast<std::size_t>(mistyped.row)).at(static_cast<std::size_t>(mistyped.column));
  std::vector<Task> tasks(cell.tasks().begin(), cell.tasks().end());
  for (Task& task : tasks) {
    if (task == mistyped.found) {
      task = mistyped.meant;
      break;  // a group may hold it twice
    }
  }
  cell = tasks.size() == 1 ? Cell(tasks.front()) : Cell(std::move(tasks));
  return Schedule(schedule.form(), std::move(rows), schedule.headers());
}

std::optional<Mistyped> find_mistyped(const Schedule& schedule, const StageGraph& graph) {
  const TaskGraph tasks(schedule.rows(), graph, schedule.microbatches());
  for (const auto& [key, of] : by_stage_and_kind(tasks)) {
    const StageId stage = key.first;
    const CellKind kind = key.second;
    const auto twice = only_double(of);
    const auto missing = twice ? only_missing(tasks, kind, stage) : std::nullopt;
    if (!missing) {
      continue;
    }
    const std::vector<const Entry*>& places = of.places.at(*twice);
    const auto at = [&](const Entry& entry, const Entry& other) {
      return Mistyped{entry.row,
                      entry.column,
                      {kind, stage, Microbatch(*twice)},
                      {kind, stage, Microbatch(*missing)},
                      std::pair(other.row, other.column)};
    };
    const auto faults = [&](const Mistyped& m) {
      return validate(apply(schedule, m), graph).size();
    };
    const Mistyped second = at(*places.back(), *places.front());
    const Mistyped first = at(*places.front(), *places.back());
    return faults(first) < faults(second) ? first : second;
  }
  return find_stray(schedule, graph, tasks);
}

std::string to_string(const Mistyped& mistyped, const Schedule& schedule) {
  return fmt::format("{} for {} ({})",
                     to_string(mistyped.meant),
                     to_string(mistyped.found),
                     place_text(schedule, mistyped.row, mistyped.column));
}

std::vector<Violation> report_mistyped(std::vector<Violation> found,
                                       const Schedule& schedule,
                                       const StageGraph& graph,
                                       const ValidateOptions& options) {
  std::vector<Violation> reported;
  Schedule corrected = schedule;
  while (!found.empty() && reported.size() < kMostReported) {
    const auto mistyped = find_mistyped(corrected, graph);
    if (!mistyped) {
      break;
    }
    reported.push_back(violation_of(*mistyped, schedule));
    corrected = apply(corrected, *mistyped);
    found = validate(corrected, graph, options);
  }
  if (!reported.empty()) {
    for (Violation& v : found) {
      v.repair.reset();  // its cells have other names in the schedule
    }
  }
  std::ranges::move(found, std::back_inserter(reported));
  std::ranges::stable_sort(reported, {}, &Violation::rule);
  return reported;
}

}  // namespace stagecraft
