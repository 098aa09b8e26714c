/// validate finds every reason why a schedule cannot work, before any task is dispatched.
///
/// Rules V01 to V35: rules/ has a file per theme, named for its rules. The array form is judged by
/// columns (a cell uses results of earlier columns only), the list form by whether all its rows can
/// run to the end (V29). Pure; any thread.
/// VA-1: every breach of a rule is reported, with the cell, what it lacks and what to do. Cells
///       that break a rule for the same cause are one violation, which lists them all.
/// VA-2: a task that does not exist (V03 to V06) takes no part in later rules; a missing
///       prerequisite counts as late.
/// VA-3: validation of a valid schedule is linear in the cells.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/costs/memory_model.h"
#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/model/number_range.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// An exchange of the cells at `first` and `second` of `row` (columns, or positions of a list) that
/// repairs a violation.
struct Exchange {
  int row = 0;
  int first = 0;
  int second = 0;

  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// A cell's member with a wrong number: `found` appears twice, and `meant` is missing.
struct Mistyped {
  int row = 0;
  int column = 0;  ///< or position of a list
  Task found;
  Task meant;
  std::pair<int, int> other;  ///< row and column of the right one
};

struct Violation {
  static constexpr int kNowhere = -1;

  /// Another cell that breaks the rule for the same cause.
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
  /// V09, V10: each of these stages lacks its task of each of these microbatches.
  std::vector<NumberRange> stages;
  std::vector<NumberRange> microbatches;
  std::string cause;  ///< the common cause of violations that are reported as one
  /// If one exchange is enough: set for V29, and for the first of all other violations of order
  /// (V20 to V25, V27, V31), which it repairs together.
  std::optional<Exchange> repair;
  std::optional<Mistyped> mistyped;  ///< repairs a V08 that tell_mistyped() found
};

/// Gives the number of queues that a row has for its sends and receives.
enum class TransferStreams : std::uint8_t {
  PerPeerAndDirection,  ///< one per other row and direction: never a deadlock of its own
  OnePerRank,           ///< one for all transfers: V35 finds deadlocks of this queue
};

struct ValidateOptions {
  std::optional<int> microbatches;  ///< of the step; absent: the schedule's own
  std::optional<int> devices;       ///< required number of rows; absent: the schedule's own header
  bool forward_only = false;        ///< evaluation: missing backwards are no fault
  bool microbatch_order = false;    ///< V27: every stage takes microbatches in order
  bool pad_rows = false;            ///< short rows end in bubbles instead of a breach of V01
  std::optional<MemoryModel> memory;  ///< V30: the bytes that a row may hold
  /// V31, V35: transfers are matched by order only, on these streams. Absent: by name, in any
  /// order.
  std::optional<TransferStreams> ordered_transfers;
  /// The actions that a file lists in addition to the tasks, row by row. If it lists any transfer,
  /// all transfers are judged in the file's own order, on one stream per row unless
  /// `ordered_transfers` says otherwise; else they follow from the tasks.
  std::span<const CommAction> communication;
};

/// Returns all violations, by rule; empty when the schedule is valid for the graph.
[[nodiscard]] std::vector<Violation> validate(const Schedule& schedule,
                                              const StageGraph& graph,
                                              const ValidateOptions& options = {});

/// Returns the schedule with the two cells exchanged. Requires: they exist.
[[nodiscard]] Schedule apply(const Schedule& schedule, const Exchange& exchange);
/// Returns "0B1 and the bubble of row 0 (columns 4 and 5)".
[[nodiscard]] std::string to_string(const Exchange& exchange, const Schedule& schedule);

/// Returns "V22 row 0 column 2 (0B0): message" for one violation.
[[nodiscard]] std::string to_string(const Violation& violation);

}  // namespace stagecraft
