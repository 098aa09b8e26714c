/// simulate: when each task of a schedule runs, and what every row does in between.
///
/// Rows run their lists in order. An entry starts when its row is free and all it waits for has
/// ended, a transfer later when that ran on another row; the members of a group start and end
/// together. Columns play no part. Where rows share fewer processors than they have threads
/// (CostDevice), all that run at a time are slowed down alike. Further orders may be given that
/// tasks and transfers keep. Pure; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/costs.h"
#include "stagecraft/scheduler/event_order.h"
#include "stagecraft/scheduler/schedule.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

struct EntryTime {
  const Cell* cell = nullptr;  ///< in the simulated schedule, which must outlive the timeline
  double start = 0;
  double end = 0;
  std::optional<Task> waited_for;  ///< whose result came last, where the row stood idle for it
  /// How much of that wait the result spent on its way, or, by an order, with its transfer waiting
  /// for another.
  double in_transfer = 0;
  double bytes = 0;        ///< held by the row meanwhile, as the memory model has it
  double bytes_after = 0;  ///< still held when it has ended
};

/// Why a row was idle; the parts add up to its idle time.
struct Bubbles {
  double warm_up = 0;     ///< before its first task
  double dependency = 0;  ///< between tasks, until another row had made what was needed
  double transfer = 0;    ///< between tasks, until that had arrived
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
  /// (last end - first start) - busy: what stays when consecutive steps overlap their ramps.
  double span_idle = 0;
  int peak_in_flight = 0;  ///< most activations held at once, in stages x microbatches
  double peak_bytes = 0;   ///< by the memory model
};

struct Timeline {
  std::vector<RowTimeline> rows;
  double makespan = 0;
  /// Tasks that each start when the one before has ended (or arrived), up to the last to end.
  std::vector<Task> critical_path;

  [[nodiscard]] double bubble_fraction(std::size_t row) const {
    return makespan > 0 ? rows[row].idle / makespan : 0;
  }
  /// Of all rows' time.
  [[nodiscard]] double bubble_fraction() const;
};

/// `orders`: kept besides the schedule's own; an entry may then wait for a task of its own row.
/// Requires: validate() finds nothing in the schedule's list form.
/// Errors: ScheduleInvalid when a task waits for one that is missing or that waits for it, also by
///         an order, and for an order of what the schedule does not have.
/// Cost: linear in the cells; times rows where they share processors.
[[nodiscard]] Timeline simulate(const Schedule& schedule,
                                const StageGraph& graph,
                                const Costs& costs = {},
                                std::span<const EventOrder> orders = {});

enum class BubbleCause : std::uint8_t { WarmUp, Dependency, Transfer, Drain };

/// Returns "warm-up", "dependency", "communication" or "drain".
[[nodiscard]] std::string_view name(BubbleCause cause);

/// A time in which a row stood idle, for one reason.
struct Bubble {
  int row = 0;
  double start = 0;
  double end = 0;
  BubbleCause cause = BubbleCause::Drain;
  const EntryTime* next = nullptr;  ///< what ran then, and says what it waited for; none for drain

  [[nodiscard]] double length() const { return end - start; }
};

/// Every bubble, row by row in order of time; those of a row add up to its `bubbles`. A wait for a
/// result that had still to be made and then to travel is two. Views the timeline.
[[nodiscard]] std::vector<Bubble> list_bubbles(const Timeline& timeline);

/// The most activations `row` holds at once: one more at F, one less at B or W (at I, where W does
/// nothing); a group's F counts first. Stages without a backward keep nothing.
[[nodiscard]] int peak_in_flight(const Schedule::Row& row, const StageGraph& graph);

}  // namespace stagecraft
