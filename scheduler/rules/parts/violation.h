/// Violation is one breach of a rule: the rule, the place, the missing tasks, and the remedy.
///
/// Rules make violations, validate() returns them, and commands, pages and drawings show them.
/// Values; any thread.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/model/cell.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft {

/// Exchange swaps the cells at `first` and `second` of `row` (columns, or positions of a list) to
/// repair a violation.
struct Exchange {
  int row = 0;
  int first = 0;
  int second = 0;

  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// Mistyped is a cell's member with a wrong number: `found` appears twice or is alone with its
/// number, and `meant` is missing.
struct Mistyped {
  int row = 0;
  int column = 0;  ///< or position of a list
  Task found;
  Task meant;
  std::optional<std::pair<int, int>> other = {};  ///< row and column of the right one of two
};

struct Violation {
  static constexpr int kNowhere = -1;

  /// SameCause is another cell that breaks the rule for the same cause.
  struct SameCause {
    int row = kNowhere;
    int column = kNowhere;
    std::optional<Task> task;
    std::string missing;
  };

  std::string rule;          ///< "V22"
  int row = kNowhere;        ///< kNowhere if no row is at fault
  int column = kNowhere;     ///< position in the list form; kNowhere if no single cell is at fault
  std::optional<Task> task;  ///< the offending task
  std::string missing;       ///< the tasks, stages or cells that it lacks or conflicts with
  std::string message;       ///< what was expected, what was found, what to do
  std::vector<Task> cycle;   ///< V29, V35: each waits for the one before it, the first for the last
  std::vector<std::pair<int, int>> cells;  ///< row and column of all cells involved, for drawing
  std::vector<SameCause> more;             ///< in addition to the one of `task` and `message`
  /// V09, V10: the stages; each lacks its task of each of these microbatches.
  std::vector<NumberRange> stages;
  std::vector<NumberRange> microbatches;
  std::string cause;  ///< the common cause of violations that are reported as one
  /// The exchange, if one is enough. It is set for V29, and for the first of all other violations
  /// of order (V20 to V25, V27, V31), which it repairs together.
  std::optional<Exchange> repair;
  std::optional<Mistyped> mistyped;  ///< repairs what report_mistyped() found
};

/// Returns "V22 row 0 column 2 (0B0): message" for one violation.
[[nodiscard]] std::string to_string(const Violation& violation);

/// Returns the schedule with the two cells exchanged. Requires: they exist.
[[nodiscard]] Schedule apply(const Schedule& schedule, const Exchange& exchange);
/// Returns "0B1 and the bubble of row 0 (columns 4 and 5)".
[[nodiscard]] std::string to_string(const Exchange& exchange, const Schedule& schedule);

}  // namespace stagecraft
