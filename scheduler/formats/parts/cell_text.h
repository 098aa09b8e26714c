/// cell_text defines the words that the readers of schedule files share: numbers, kinds, cells, and
/// the place of a fault.
///
/// Used by the text and the CSV form, and in part by others. Every reader names line and column of
/// text that it does not understand.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft::formats {

/// The largest file. Readers refuse longer ones.
inline constexpr std::size_t kMaxBytes = std::size_t{256} << 20U;

/// Location is a reader's place, counted from 1 as editors do.
struct Location {
  std::size_t line = 0;
  std::size_t column = 0;
};

/// Lines converts offsets of a text to places; it is fast for ascending offsets. Views the text.
class Lines {
 public:
  explicit Lines(std::string_view text) : text_(text) {}

  [[nodiscard]] Location location(std::size_t offset) const;

 private:
  std::string_view text_;
  mutable std::size_t line_ = 1;      // of the latest offset
  mutable std::size_t begin_ = 0;     // of that line
  mutable std::size_t searched_ = 0;  // no line end before here
};

/// Returns "line 2, column 7: what".
[[nodiscard]] std::string located(Location at, std::string_view what);
/// Throws ScheduleParse with `what`, located.
[[noreturn]] void fail(Location at, std::string_view what);
/// Checks the size. Errors: ScheduleParse for a text longer than kMaxBytes.
void require_size(std::string_view text);

/// Returns whether one more row or cell may be read. If not, kNoRoom is the message.
[[nodiscard]] inline bool has_room(std::size_t rows, std::size_t cells) {
  return rows < static_cast<std::size_t>(kMaxStages) && cells < kMaxCells;
}
inline constexpr std::string_view kNoRoom =
    "a schedule has at most 65536 rows and 16777216 cells, bubbles included; split it";

/// Returns the text in quotes, shortened and printable.
[[nodiscard]] std::string quoted(std::string_view text);
/// Returns the text without blanks, tabs and carriage returns at its ends.
[[nodiscard]] std::string_view trim(std::string_view text);

/// Returns the number that the text starts with and removes it; the largest int for a larger
/// number; nothing if there is none.
[[nodiscard]] std::optional<int> leading_number(std::string_view& text);
/// Returns the number if the whole text is one.
[[nodiscard]] std::optional<int> whole_number(std::string_view text);
/// Returns the kind of a letter F, B, I, W or U.
[[nodiscard]] std::optional<CellKind> kind_of(char c);

/// Returns the cell of ".", "1F4", "0F7|7B3" or "F4" (of stage `row`).
/// Errors: ScheduleParse with the form of a cell, or with the probable meaning.
[[nodiscard]] Cell parse_cell(std::string_view text, std::size_t row, Location at);

/// Checks the numbers. Errors: ScheduleParse for a stage or microbatch beyond the limits of a
/// schedule.
void require_sane(const Task& task, std::string_view text, Location at);

}  // namespace stagecraft::formats
