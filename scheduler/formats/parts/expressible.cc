#include "stagecraft/scheduler/formats/parts/expressible.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft::formats {
namespace {

/// Tasks without a kind or with a number below 0 come only from JSON.
std::string fault_of_task(const Cell& cell) {
  if (cell.is_group() && cell.tasks().size() < 2) {
    return "an overlap group has two tasks or more";
  }
  for (const Task& task : cell.tasks()) {
    const bool known = letter(task.kind) != '?' && task.kind != CellKind::Idle;
    if (!known || task.stage.value < 0 || task.microbatch.value < 0) {
      return "it is not a task of a schedule; repair it first, as stagecraft schedule check tells";
    }
  }
  return "";
}

bool equal(std::span<const StageId> found, const std::vector<StageId>& expected) {
  return std::ranges::equal(found, expected);
}

bool is_chain_at(const StageGraph& graph, StageId s) {
  using Stages = std::vector<StageId>;
  const Stages before = s.value == 0 ? Stages{} : Stages{StageId(s.value - 1)};
  const Stages after = s.value + 1 == graph.size() ? Stages{} : Stages{StageId(s.value + 1)};
  return equal(graph.preds(s), before) && equal(graph.succs(s), after);
}

std::string fault_in_graph(const StageGraph& graph, const Cell& cell, GraphWords words) {
  for (const Task& task : cell.tasks()) {
    if (words == GraphWords::Any || task.stage.value >= graph.size()) {
      continue;
    }
    if (graph.replicas() > 1 || (words == GraphWords::Chain && !is_chain_at(graph, task.stage))) {
      return fmt::format(
          "its stage {} is not part of one chain of stages, and the format has no word for other "
          "graphs; write text or JSON",
          task.stage.value);
    }
    if (!graph.needs_weight_grad(task.stage)) {
      return fmt::format(
          "its stage {} is frozen, and the format has no word for that; write text or JSON",
          task.stage.value);
    }
  }
  return "";
}

std::string fault_in_words(const Cell& cell, const FormatWords& format) {
  const auto tasks = cell.tasks();
  const bool update =
      std::ranges::any_of(tasks, [](const Task& task) { return task.kind == CellKind::Update; });
  if (update && !format.updates) {
    return "the format has no word for an update; leave updates out or write text or JSON";
  }
  if (cell.is_group() && format.groups == GroupWords::None) {
    return "the format has no word for an overlap group; write text or JSON";
  }
  if (cell.is_group() && format.groups == GroupWords::Independent && need_each_other(tasks)) {
    return "the format runs tasks of one microbatch in one stage one after the other; write text "
           "or JSON";
  }
  if (cell.is_group() && format.groups == GroupWords::ForwardWithBackward &&
      (tasks.size() != 2 || tasks[0].kind != CellKind::Forward ||
       tasks[1].kind != CellKind::Backward)) {
    return "the format overlaps one forward with one backward only; write text or JSON";
  }
  return "";
}

}  // namespace

bool need_each_other(std::span<const Task> tasks) {
  std::vector<std::pair<StageId, Microbatch>> work;
  std::ranges::transform(tasks, std::back_inserter(work), [](const Task& task) {
    return std::pair(task.stage, task.microbatch);
  });
  std::ranges::sort(work);
  return std::ranges::adjacent_find(work) != work.end();
}

void require_expressible(const Schedule& schedule,
                         const StageGraph& graph,
                         const FormatWords& format) {
  if (format.graph != GraphWords::Any && !graph.microbatch_sizes().empty()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} cannot express that stages take microbatches of different sizes; "
                            "write text or JSON",
                            format.name));
  }
  if (!format.places && !schedule.headers().places.empty()) {
    throw Error(Errc::ScheduleParameter,
                fmt::format("{} cannot express the ranks of a row (@place); write text or JSON",
                            format.name));
  }
  for (std::size_t r = 0; r < schedule.rows().size(); ++r) {
    const Schedule::Row& row = schedule.rows()[r];
    for (std::size_t c = 0; c < row.size(); ++c) {
      std::string fault = fault_of_task(row[c]);
      fault = fault.empty() ? fault_in_words(row[c], format) : fault;
      fault = fault.empty() ? fault_in_graph(graph, row[c], format.graph) : fault;
      if (!fault.empty()) {
        throw Error(Errc::ScheduleParameter,
                    fmt::format("{} cannot express {} (row {}, column {}): {}",
                                format.name,
                                to_string(row[c]),
                                r,
                                c,
                                fault));
      }
    }
  }
}

}  // namespace stagecraft::formats
