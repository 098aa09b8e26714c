#include "stagecraft/scheduler/rules/repair/mistyped.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/place_text.h"
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

Violation violation_of(const Mistyped& mistyped, const Schedule& schedule) {
  const auto [row, column] = mistyped.other;
  Violation v;
  v.rule = "V08";
  v.row = mistyped.row;
  v.column = mistyped.column;
  v.task = mistyped.found;
  v.missing = to_string(mistyped.meant);
  v.message = fmt::format("{} is at {} and again here, and {} is missing; write {}",
                          to_string(mistyped.found),
                          place_text(schedule, row, column),
                          to_string(mistyped.meant),
                          to_string(mistyped, schedule));
  v.cells = {{mistyped.row, mistyped.column}, mistyped.other};
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
                      {other.row, other.column}};
    };
    const auto faults = [&](const Mistyped& m) {
      return validate(apply(schedule, m), graph).size();
    };
    const Mistyped second = at(*places.back(), *places.front());
    const Mistyped first = at(*places.front(), *places.back());
    return faults(first) < faults(second) ? first : second;
  }
  return std::nullopt;
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
