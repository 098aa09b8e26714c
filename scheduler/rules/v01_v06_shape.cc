/// V01 to V06: the array is a rectangle of the right height, and its cells name existing things.
#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/scheduler/model/layout.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/rules/parts/rule_input.h"

namespace stagecraft::rules {

namespace {

void check_rectangle(const RuleInput& in, Violations& out) {
  const auto& rows = in.schedule.rows();
  if (rows.empty()) {
    out.push_back(
        {.rule = "V01", .message = "the schedule has no row; it needs one row per device"});
    return;
  }
  if (in.tasks.entries().empty()) {
    out.push_back(
        {.rule = "V01",
         .message = "the schedule holds only bubbles; give its rows tasks, e.g. 0F0 0B0"});
  }
  if (in.schedule.form() == Schedule::Form::List || in.options.pad_rows) {
    return;
  }
  const std::size_t width = in.schedule.columns();
  std::map<std::size_t, std::vector<int>> short_rows;  // by length
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (rows[r].size() != width) {
      short_rows[rows[r].size()].push_back(static_cast<int>(r));
    }
  }
  for (const auto& [length, numbers] : short_rows) {
    Violation v;
    v.rule = "V01";
    v.row = numbers.front();
    v.missing = fmt::format("{} cells", width - length);
    v.message = fmt::format(
        "{} {} {} cells, expected {} as in the longest row; end {} with '.' or declare a list",
        counted("row", ranges_of(numbers)),
        numbers.size() == 1 ? "has" : "have",
        length,
        width,
        numbers.size() == 1 ? "it" : "them");
    for (const int row : std::span(numbers).subspan(1)) {
      v.more.push_back({.row = row, .missing = v.missing});
    }
    out.push_back(std::move(v));
  }
}

void check_row_count(const RuleInput& in, Violations& out) {
  const auto expected = in.options.devices ? in.options.devices : in.schedule.headers().rows;
  if (expected && *expected != in.tasks.rows()) {
    out.push_back(
        {.rule = "V02",
         .message = fmt::format("the schedule has {} rows for {} devices; give each device one row",
                                in.tasks.rows(),
                                *expected)});
  }
  if (std::string fault = place_fault(in.schedule); !fault.empty()) {
    out.push_back({.rule = "V02", .message = std::move(fault)});
  }
}

bool known_kind(CellKind kind) {
  return kind >= CellKind::Forward && kind <= CellKind::Update;
}

/// Returns the kind as text. A reader stores an unknown letter as the kind.
std::string kind_text(CellKind kind) {
  const auto number = static_cast<unsigned char>(kind);
  return number > ' ' && number <= '~' ? fmt::format("kind '{}'", static_cast<char>(number))
         : number == 255               ? "its kind"
                                       : fmt::format("kind number {}", number);
}

void check_task(const RuleInput& in, const Entry& entry, const Task& task, Violations& out) {
  if (!known_kind(task.kind)) {
    Violation v = at("V06", entry, task);
    v.cause = std::to_string(static_cast<int>(task.kind));
    v.message = fmt::format("{} is none of F, B, I, W, U; replace it", kind_text(task.kind));
    out.push_back(std::move(v));
    return;
  }
  const bool known_stage = task.stage.value >= 0 && task.stage.value < in.graph.size();
  if (!known_stage) {
    Violation v = at("V04", entry, task);
    v.cause = "stages of tasks";
    v.message = fmt::format(
        "{} names stage {}, but stages go from 0 to {}; correct the stage or the stage graph",
        to_string(task),
        task.stage.value,
        in.graph.size() - 1);
    out.push_back(std::move(v));
  }
  const int size = known_stage ? in.graph.microbatch_size(task.stage) : 1;
  const int microbatches = in.tasks.microbatches() / size;
  const bool exists = task.microbatch.value >= 0 && task.microbatch.value < microbatches;
  if (!exists && task.kind != CellKind::Update) {
    Violation v = at("V05", entry, task);
    v.cause = "microbatches of tasks";
    v.message = fmt::format(
        "{} names microbatch {}, but {} {} (0 to {}); correct it or declare more microbatches",
        to_string(task),
        task.microbatch.value,
        size > 1                  ? fmt::format("a stage of microbatches of size {} has", size)
        : in.graph.replicas() > 1 ? "each replica has"
                                  : "there are",
        microbatches,
        microbatches - 1);
    out.push_back(std::move(v));
  }
}

}  // namespace

void check_shape(const RuleInput& in, Violations& out) {
  check_rectangle(in, out);
  check_row_count(in, out);
}

void check_entries(const RuleInput& in, Violations& out) {
  for (const Entry& entry : in.tasks.entries()) {
    const auto tasks = entry.cell->tasks();
    if (entry.cell->is_group() && tasks.size() < 2) {
      Violation v = at("V03", entry, tasks.front());
      v.cause = "groups of one";
      v.message = fmt::format("the group '{}' has one task; a group joins two or more tasks",
                              to_string(*entry.cell));
      out.push_back(std::move(v));
    }
    for (const Task& task : tasks) {
      if (task.kind == CellKind::Idle) {
        Violation v = at("V03", entry, task);
        v.cause = "tasks without a kind";
        v.message = fmt::format("'{}' holds a task without a kind; write idle for a bubble",
                                to_string(*entry.cell));
        out.push_back(std::move(v));
      } else {
        check_task(in, entry, task, out);
      }
    }
  }
}

}  // namespace stagecraft::rules
