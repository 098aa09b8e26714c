/// validate: every way in which a schedule cannot work, found before anything is dispatched.
///
/// Rules V01 to V35: rules/ has a file per theme, named for its rules. The array form is judged by
/// columns (a cell uses results of earlier columns only), the list form by whether its rows can all
/// run to the end (V29). Pure; any thread.
/// VA-1: everything that breaks a rule is reported, with the cell, what it lacks and what to do.
/// Cells that break a rule for the same cause are one violation, which has them all.
/// VA-2: a task that does not exist (V03 to V06) takes no part in later rules; a prerequisite that
/// is missing counts as late.
/// VA-3: linear in the cells when the schedule is valid.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/scheduler/communication.h"
#include "stagecraft/scheduler/memory_model.h"
#include "stagecraft/scheduler/number_range.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Exchanging the cells at `first` and `second` of `row` (columns, or positions of a list) repairs
/// a violation.
struct Exchange {
  int row = 0;
  int first = 0;
  int second = 0;

  friend bool operator==(const Exchange&, const Exchange&) = default;
};

/// A cell's member whose number is wrong: it is there twice, and what was meant is not.
struct Mistyped {
  int row = 0;
  int column = 0;  ///< or position of a list
  Task found;
  Task meant;
  std::pair<int, int> other;  ///< row and column of the one that is right
};

struct Violation {
  static constexpr int kNowhere = -1;

  /// One more that breaks the rule for the same cause.
  struct Kin {
    int row = kNowhere;
    int column = kNowhere;
    std::optional<Task> task;
    std::string missing;
  };

  std::string rule;       ///< "V22"
  int row = kNowhere;     ///< kNowhere when no row is at fault
  int column = kNowhere;  ///< position in the list form; kNowhere when no single cell is at fault
  std::optional<Task> task;  ///< the offending task
  std::string missing;       ///< the tasks, stages or cells it lacks or clashes with
  std::string message;       ///< what was expected, what was found, what to do
  std::vector<Task> cycle;   ///< V29, V35: each waits for the one before it, the first for the last
  std::vector<std::pair<int, int>> cells;  ///< row and column of all cells involved, for drawing
  std::vector<Kin> more;                   ///< beside the one that `task` and `message` are about
  /// V09, V10: each of these stages lacks its task of each of these microbatches.
  std::vector<NumberRange> stages;
  std::vector<NumberRange> microbatches;
  std::string cause;  ///< what violations of the rule have in common that are told as one
  /// Where one exchange is enough: V29, and the first of all others that are about order (V20 to
  /// V25, V27, V31), which it repairs together.
  std::optional<Exchange> repair;
  std::optional<Mistyped> mistyped;  ///< what repairs a V08 that tell_mistyped() found
};

/// How many queues a row has for what it sends and receives.
enum class TransferStreams : std::uint8_t {
  PerPeerAndDirection,  ///< one per other row and direction: never a deadlock of its own
  OnePerRank,           ///< one for everything: V35 finds where that blocks
};

struct ValidateOptions {
  std::optional<int> microbatches;    ///< of the step; absent: the schedule's own
  std::optional<int> devices;         ///< rows there must be; absent: the schedule's own header
  bool forward_only = false;          ///< evaluation: no backward is missed
  bool microbatch_order = false;      ///< V27: every stage takes microbatches in order
  bool pad_rows = false;              ///< short rows end in bubbles instead of breaking V01
  std::optional<MemoryModel> memory;  ///< V30: what a row may hold
  /// V31, V35: transfers are matched by order alone, on these streams. Absent: by name, in any
  /// order.
  std::optional<TransferStreams> ordered_transfers;
  /// What a file lists beside the tasks, row by row. Where it lists any transfer, all are judged in
  /// the file's own order, on one stream per row unless `ordered_transfers` says otherwise; else
  /// they follow from the tasks.
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
