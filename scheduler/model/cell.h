/// A Cell is the content of one row in one column: nothing, one task, or a group of tasks issued
/// together.
///
/// Builders and parsers make cells, validate() judges them, and lowering turns their tasks into
/// instructions. A cell is a value; copies of a group share its member list. Any thread.
/// C-1: an idle cell has no tasks, so equal cells compare equal.
/// C-2: a cell may hold nonsense (a negative stage, a group of one). validate() reports it, not the
///      constructor, because one report must show every fault of a schedule at once.
#pragma once

#include <compare>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "stagecraft/base/ids.h"

namespace stagecraft {

enum class CellKind : std::uint8_t {
  Idle,
  Forward,
  Backward,
  BackwardInput,
  BackwardWeight,
  Update
};

/// Returns the letter of the text form: F, B, I, W, U, and '.' for Idle; '?' for a value outside
/// the enumeration.
[[nodiscard]] char letter(CellKind kind);

/// Task is a node of the task graph: a kind of work for a stage and a microbatch (0 for an update).
struct Task {
  CellKind kind = CellKind::Idle;
  StageId stage;
  Microbatch microbatch;

  friend constexpr auto operator<=>(const Task&, const Task&) = default;
};

/// Returns "1F4" for the forward of microbatch 4 on stage 1, "1U" for its update.
[[nodiscard]] std::string to_string(const Task& task);

class Cell {
 public:
  Cell() = default;
  explicit Cell(const Task& task) : first_(task), count_(1) {}
  /// Makes a group: its tasks are issued together, so that the transfers of one overlap the
  /// computation of another.
  explicit Cell(std::vector<Task> group);

  [[nodiscard]] bool idle() const { return count_ == 0; }
  /// Returns whether the cell was written as an overlap group.
  [[nodiscard]] bool is_group() const { return group_ != nullptr; }
  [[nodiscard]] std::span<const Task> tasks() const {
    return group_ ? std::span<const Task>(*group_) : std::span<const Task>(&first_, count_);
  }

  friend bool operator==(const Cell& a, const Cell& b);

 private:
  Task first_;
  std::uint32_t count_ = 0;
  std::shared_ptr<const std::vector<Task>> group_;
};

/// Returns ".", "1F4" or "0F7|7B3".
[[nodiscard]] std::string to_string(const Cell& cell);

/// These functions make cells for schedules written by hand: `using namespace stagecraft::cells;`.
namespace cells {

// NOLINTBEGIN(readability-identifier-naming): the letters of the text form, and a bubble
[[nodiscard]] Cell F(int stage, int microbatch);
[[nodiscard]] Cell B(int stage, int microbatch);
[[nodiscard]] Cell I(int stage, int microbatch);
[[nodiscard]] Cell W(int stage, int microbatch);
[[nodiscard]] Cell U(int stage);
/// Joins the tasks of `members` into one overlap group.
[[nodiscard]] Cell overlap(std::initializer_list<Cell> members);
template <class... Cells>
[[nodiscard]] Cell overlap(const Cell& first, const Cells&... rest) {
  return overlap({first, rest...});
}
inline const Cell idle;
// NOLINTEND(readability-identifier-naming)

}  // namespace cells
}  // namespace stagecraft
