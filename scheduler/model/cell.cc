#include "stagecraft/scheduler/model/cell.h"

#include <algorithm>
#include <utility>

namespace stagecraft {

char letter(CellKind kind) {
  switch (kind) {
    case CellKind::Idle:
      return '.';
    case CellKind::Forward:
      return 'F';
    case CellKind::Backward:
      return 'B';
    case CellKind::BackwardInput:
      return 'I';
    case CellKind::BackwardWeight:
      return 'W';
    case CellKind::Update:
      return 'U';
  }
  return '?';
}

std::string to_string(const Task& task) {
  std::string text = to_string(task.stage);
  text += letter(task.kind);
  if (task.kind != CellKind::Update) {
    text += to_string(task.microbatch);
  }
  return text;
}

Cell::Cell(std::vector<Task> group)
    : count_(static_cast<std::uint32_t>(group.size())),
      group_(std::make_shared<const std::vector<Task>>(std::move(group))) {}

bool operator==(const Cell& a, const Cell& b) {
  return a.is_group() == b.is_group() && std::ranges::equal(a.tasks(), b.tasks());
}

std::string to_string(const Cell& cell) {
  if (cell.idle()) {
    return ".";
  }
  std::string text;
  for (const Task& task : cell.tasks()) {
    if (!text.empty()) {
      text += '|';
    }
    text += to_string(task);
  }
  return text;
}

namespace cells {
namespace {

Cell make(CellKind kind, int stage, int microbatch) {
  return Cell(Task{kind, StageId(stage), Microbatch(microbatch)});
}

}  // namespace

Cell F(int stage, int microbatch) {
  return make(CellKind::Forward, stage, microbatch);
}
Cell B(int stage, int microbatch) {
  return make(CellKind::Backward, stage, microbatch);
}
Cell I(int stage, int microbatch) {
  return make(CellKind::BackwardInput, stage, microbatch);
}
Cell W(int stage, int microbatch) {
  return make(CellKind::BackwardWeight, stage, microbatch);
}
Cell U(int stage) {
  return make(CellKind::Update, stage, 0);
}

Cell overlap(std::initializer_list<Cell> members) {
  std::vector<Task> tasks;
  for (const Cell& member : members) {
    tasks.insert(tasks.end(), member.tasks().begin(), member.tasks().end());
  }
  return Cell(std::move(tasks));
}

}  // namespace cells
}  // namespace stagecraft
