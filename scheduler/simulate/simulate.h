/// simulate computes the time at which each task of a schedule runs, and the cause of every idle
/// time.
///
/// Rows run their lists in order. An entry starts when its row is free and all its prerequisites
/// have ended; a prerequisite on another row counts a transfer later. The members of a group start
/// and end together. Columns play no part. If rows share fewer processors than they have threads
/// (CostDevice), all entries that run at the same time are slowed down alike. A row that stands for
/// several ranks (LA-3) shows one of them: its entries take as long as the rank's units of them,
/// and all of its ranks need processors. Costs::devices makes rows faster or slower. The caller may
/// add orders that tasks and transfers keep. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

struct EntryTime {
  const Cell* cell = nullptr;  ///< in the simulated schedule, which must outlive the timeline
  double start = 0;
  double end = 0;
  std::optional<Task> waited_for;  ///< the task whose result came last, if the row was idle for it
  /// The part of that wait in which the result was on its way, or in which its transfer waited for
  /// another by an order.
  double in_transfer = 0;
  double bytes = 0;        ///< held by the row while it runs, by the memory model
  double bytes_after = 0;  ///< still held after it has ended
};

/// Bubbles divides the idle time of a row by its cause; the parts add up to it.
struct Bubbles {
  double warm_up = 0;     ///< before its first task
  double dependency = 0;  ///< between tasks, until another row had made the input
  double transfer = 0;    ///< between tasks, until the input had arrived
  double drain = 0;       ///< after its last task

  Bubbles& operator+=(const Bubbles& more) {
    warm_up += more.warm_up;
    dependency += more.dependency;
    transfer += more.transfer;
    drain += more.drain;
    return *this;
  }
};

struct RowTimeline {
  std::vector<EntryTime> entries;  ///< in list order
  double busy = 0;
  double idle = 0;  ///< makespan - busy
  Bubbles bubbles;
  /// (last end - first start) - busy: the idle time that remains if the ramps of consecutive steps
  /// overlap.
  double span_idle = 0;
  int peak_in_flight = 0;  ///< most activations held at once, in stages x microbatches of a unit
  double peak_bytes = 0;   ///< of a rank, by the memory model
};

struct Timeline {
  std::vector<RowTimeline> rows;
  double makespan = 0;
  /// Tasks on the critical path: each starts when the previous one has ended (or arrived). The last
  /// one ends last of all.
  std::vector<Task> critical_path;

  [[nodiscard]] double bubble_fraction(std::size_t row) const {
    return makespan > 0 ? rows[row].idle / makespan : 0;
  }
  /// Returns the idle fraction of all rows' time.
  [[nodiscard]] double bubble_fraction() const;
};

/// Returns the timeline. `orders`: kept in addition to the schedule's own order; an entry may then
/// wait for a task of its own row.
/// Requires: validate() finds nothing in the schedule's list form.
/// Errors: ScheduleInvalid if a task waits for one that is missing or that waits for it, also by an
/// order; and for an order of something that the schedule does not have.
/// Cost: linear in the cells; times the rows if they share processors.
[[nodiscard]] Timeline simulate(const Schedule& schedule,
                                const StageGraph& graph,
                                const Costs& costs = {},
                                std::span<const EventOrder> orders = {});

enum class BubbleCause : std::uint8_t { WarmUp, Dependency, Transfer, Drain };

/// Returns "warm-up", "dependency", "transfer" or "drain".
[[nodiscard]] std::string_view name(BubbleCause cause);

/// Bubble is an interval in which a row was idle, with its cause.
struct Bubble {
  int row = 0;
  double start = 0;
  double end = 0;
  BubbleCause cause = BubbleCause::Drain;
  const EntryTime* next = nullptr;  ///< ran next, after this wait; null for drain

  [[nodiscard]] double length() const { return end - start; }
};

/// Returns every bubble, row by row in order of time; the bubbles of a row add up to its `bubbles`.
/// A wait for a result that had to be made and then sent gives two bubbles. Views the timeline.
[[nodiscard]] std::vector<Bubble> list_bubbles(const Timeline& timeline);

/// Returns the most activations that `row` holds at once. F adds one; B or W removes one (I, if W
/// does nothing). The F of a group counts first.
[[nodiscard]] int peak_in_flight(const Schedule::Row& row, const StageGraph& graph);

}  // namespace stagecraft
