#include "stagecraft/scheduler/formats/jaxpp.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"
#include "stagecraft/scheduler/formats/parts/fault_list.h"
#include "stagecraft/scheduler/formats/parts/python_lists.h"
#include "stagecraft/scheduler/formats/parts/rows.h"

namespace stagecraft {
namespace {

using formats::PythonCall;
using formats::PythonItem;
using formats::PythonLists;
using formats::quoted;

struct TaskType {
  std::string_view name;
  CellKind kind;
  int latency;  ///< JaxPP's default without measurements
};
constexpr std::array<TaskType, 4> kTaskTypes{{{"FWD", CellKind::Forward, 1},
                                              {"BWD", CellKind::Backward, 2},
                                              {"BWD_I", CellKind::BackwardInput, 1},
                                              {"BWD_W", CellKind::BackwardWeight, 1}}};

Task task_of(const PythonLists& lists, const PythonCall& call) {
  if (call.name != "Task") {
    lists.refuse(
        call.offset,
        fmt::format("{} is not a Task of JaxPP; a row holds Task(...), FusedTask((...)) and None",
                    quoted(call.name)));
  }
  const std::string_view type = call.argument("fwd_or_bwd").value_or("");
  const std::string_view name = type.substr(type.rfind('.') + 1);
  const auto* const found = std::ranges::find(kTaskTypes, name, &TaskType::name);
  if (found == kTaskTypes.end()) {
    lists.refuse(call.offset,
                 fmt::format("a Task needs fwd_or_bwd= TaskType.FWD, BWD, BWD_I or BWD_W, found {}",
                             type.empty() ? "none" : quoted(type)));
  }
  return {found->kind,
          StageId(lists.number(call, "stage_id", kMaxStages)),
          Microbatch(lists.number(call, "mubatch_idx", kMaxMicrobatches))};
}

bool same_work(const Task& a, const Task& b) {
  return a.stage == b.stage && a.microbatch == b.microbatch;
}

/// Returns the tasks of an item. An input half directly before its weight half is the whole
/// backward.
std::vector<Task> tasks_of(const PythonLists& lists, const PythonItem& item) {
  std::vector<Task> tasks;
  for (const PythonCall& call : item.calls) {
    const Task task = task_of(lists, call);
    if (task.kind == CellKind::BackwardWeight && !tasks.empty() &&
        tasks.back().kind == CellKind::BackwardInput && same_work(tasks.back(), task)) {
      tasks.back().kind = CellKind::Backward;
    } else {
      tasks.push_back(task);
    }
  }
  return tasks;
}

class Reader {
 public:
  explicit Reader(std::string_view text) : lists_(text) {}

  Schedule run() {
    while (lists_.next_row()) {
      require_room(lists_.offset());
      rows_.emplace_back();
      while (const auto item = lists_.next_item()) {
        require_room(item->offset);
        faults_.attempt([&] { add(*item); });
      }
    }
    faults_.refuse_if_any();
    if (!formats::hold_task(rows_)) {
      throw Error(Errc::ScheduleParse,
                  "the list holds no Task; print(schedule.tasks(8)) prints Tasks");
    }
    const bool array = bubbles_ && !unfolded_;
    if (array && !formats::pad(rows_)) {
      lists_.refuse(0, formats::kNoRoom);
    }
    Schedule schedule(Schedule::Form::Array, std::move(rows_));
    return array ? schedule : schedule.to_list();
  }

 private:
  void require_room(std::size_t offset) {
    if (!formats::has_room(rows_.size(), ++cells_)) {
      lists_.refuse(offset, formats::kNoRoom);
    }
  }

  void add(const PythonItem& item) {
    Schedule::Row& row = rows_.back();
    if (!item.tuple_type.empty() && item.tuple_type != "FusedTask") {
      lists_.refuse(item.offset,
                    fmt::format("{} is not a FusedTask of JaxPP", quoted(item.tuple_type)));
    }
    std::vector<Task> tasks = tasks_of(lists_, item);
    if (tasks.empty()) {
      bubbles_ = bubbles_ || !item.tuple;
      row.emplace_back();
    } else if (tasks.size() == 1) {
      row.emplace_back(tasks.front());
    } else if (formats::need_each_other(tasks)) {
      unfolded_ = true;
      std::ranges::transform(
          tasks, std::back_inserter(row), [](const Task& task) { return Cell(task); });
    } else {
      row.emplace_back(std::move(tasks));
    }
  }

  PythonLists lists_;
  formats::FaultList faults_;
  std::vector<Schedule::Row> rows_;
  std::size_t cells_ = 0;
  bool bubbles_ = false;
  bool unfolded_ = false;
};

std::string task_text(const Task& task) {
  const auto* const type = std::ranges::find(kTaskTypes, task.kind, &TaskType::kind);
  return fmt::format("Task(stage_id={}, mubatch_idx={}, fwd_or_bwd=TaskType.{}, latency={})",
                     task.stage.value,
                     task.microbatch.value,
                     type->name,
                     type->latency);
}

bool is_half(CellKind kind) {
  return kind == CellKind::BackwardInput || kind == CellKind::BackwardWeight;
}

std::string cell_text(const Cell& cell, bool in_halves) {
  if (cell.idle()) {
    return "None";
  }
  std::vector<std::string> parts;
  for (const Task& task : cell.tasks()) {
    if (in_halves && task.kind == CellKind::Backward) {
      parts.push_back(task_text({CellKind::BackwardInput, task.stage, task.microbatch}));
      parts.push_back(task_text({CellKind::BackwardWeight, task.stage, task.microbatch}));
    } else {
      parts.push_back(task_text(task));
    }
  }
  return parts.size() == 1 ? parts.front() : fmt::format("FusedTask(({}))", fmt::join(parts, ", "));
}

}  // namespace

bool looks_like_jaxpp(std::string_view rows) {
  return rows.starts_with('[') && rows.find("Task(") != std::string_view::npos;
}

Schedule parse_jaxpp(std::string_view text) {
  return Reader(text).run();
}

std::string to_jaxpp(const Schedule& schedule) {
  const bool in_halves = std::ranges::any_of(schedule.rows(), [](const Schedule::Row& row) {
    return std::ranges::any_of(row, [](const Cell& cell) {
      return std::ranges::any_of(cell.tasks(), is_half, &Task::kind);
    });
  });
  std::string text;
  for (const Schedule::Row& row : schedule.rows()) {
    std::string cells;
    for (const Cell& cell : row) {
      cells += (cells.empty() ? "" : ", ") + cell_text(cell, in_halves);
    }
    text += fmt::format("{}[{}]", text.empty() ? "[" : ",\n ", cells);
  }
  return text + "]\n";
}

}  // namespace stagecraft
