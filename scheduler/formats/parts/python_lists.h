/// PythonLists reads a list of rows of calls, as Python prints and evaluates it.
///
///     [[Task(stage_id=0, mubatch_idx=0, fwd_or_bwd=TaskType.FWD), None],
///      [(Task(...), Task(...)), FusedTask((Task(...), Task(...)))]]
///
/// Schedulers written in Python keep a schedule as a list of this form and have no file format;
/// print() makes one. The reader goes from front to back, row by row; the caller interprets the
/// calls. Views the text, which must outlive it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/formats/parts/cell_text.h"

namespace stagecraft::formats {

struct PythonCall {
  std::string_view name;  ///< "Task", without the modules before it
  /// Pairs of name=value; values as written, without quotes.
  std::vector<std::pair<std::string_view, std::string_view>> arguments;
  std::size_t offset = 0;

  [[nodiscard]] std::optional<std::string_view> argument(std::string_view name) const;
};

/// PythonItem is the content of one place of a row: nothing for None, one call, or a tuple of
/// calls.
struct PythonItem {
  std::vector<PythonCall> calls;
  bool tuple = false;
  std::string_view tuple_type;  ///< "FusedTask"; empty for a plain tuple
  std::size_t offset = 0;
};

class PythonLists {
 public:
  explicit PythonLists(std::string_view text);

  /// Opens the next row and returns whether there is one. Nothing may follow the last row.
  [[nodiscard]] bool next_row();
  /// Returns the next item of the open row; nothing at its end, which closes the row.
  [[nodiscard]] std::optional<PythonItem> next_item();

  /// Returns the argument of a call, a number from 0 to below `end`.
  /// Errors: ScheduleParse if it is absent or not such a number.
  [[nodiscard]] int number(const PythonCall& call, std::string_view name, int end) const;

  /// Returns the offset that reading has reached.
  [[nodiscard]] std::size_t offset() const { return at_; }
  /// Throws ScheduleParse with line and column of an offset.
  [[noreturn]] void refuse(std::size_t offset, std::string_view what) const;

 private:
  [[nodiscard]] char peek();
  [[nodiscard]] bool take(char c);
  void expect(char c, std::string_view where);
  [[nodiscard]] bool next_element(bool first, char close);
  [[nodiscard]] std::string_view name(std::string_view what);
  [[nodiscard]] std::string_view value();
  [[nodiscard]] PythonCall call(std::string_view type, std::size_t offset);
  void calls(PythonItem& item, char close);

  std::string_view text_;
  Lines lines_;
  std::size_t at_ = 0;
  bool any_row_ = false;
  bool any_item_ = false;
};

}  // namespace stagecraft::formats
