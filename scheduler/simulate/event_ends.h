/// EventEnds tracks the causes for which events of a step with kept orders wait, and the times at
/// which these have ended.
///
/// simulate() reports the end of every entry. EventEnds answers which entry an event still waits
/// for, and when transfers that wait for others have arrived. It is made once for a run. It views
/// tasks and links, which must outlive it. One thread.
/// EE-1: the end of a transfer is known as soon as all entries have ended that it waits for,
///       directly or through other transfers.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "stagecraft/scheduler/costs/costs.h"
#include "stagecraft/scheduler/model/task_graph.h"
#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

class EventEnds {
 public:
  static constexpr int kNothing = TaskGraph::kMissing;

  struct End {
    double time = 0;
    int entry = kNothing;  ///< the last of its causes to end
    StepEvent event;       ///< the event that ended
  };

  /// Errors: ScheduleInvalid for an order of a task or transfer that the schedule does not have,
  /// and for transfers that wait for each other.
  EventEnds(const TaskGraph& tasks, const LinkCosts& links, std::span<const EventOrder> orders);

  [[nodiscard]] bool empty() const { return befores_.empty(); }
  void set_end(int entry, double time) { ends_[static_cast<std::size_t>(entry)] = time; }
  [[nodiscard]] bool has_ended(int entry) const {
    return ends_[static_cast<std::size_t>(entry)] >= 0;
  }

  /// Returns an entry that has not ended and for which the task, or one of the transfers to it,
  /// waits by an order; kNothing if there is none. Ignores the other dependencies of the task.
  [[nodiscard]] int awaited(const Task& task) const;

  /// Returns whether an order makes the event wait for others.
  [[nodiscard]] bool is_ordered(const StepEvent& event) const { return befores_.contains(event); }
  /// Returns the last of these others to end. Requires: awaited() finds nothing for its task.
  [[nodiscard]] End last_before(const StepEvent& event);
  /// Returns the end of the event. Requires: an order names the event, and awaited() finds nothing
  /// for its task.
  [[nodiscard]] End end_of(const StepEvent& event);

 private:
  void find_receivers();
  void refuse_circles() const;
  void require(const StepEvent& event, const EventOrder& order) const;
  [[nodiscard]] int awaited_by(const StepEvent& event) const;

  const TaskGraph& tasks_;
  const LinkCosts& links_;
  std::vector<double> ends_;                             // by entry; negative: not yet
  std::map<StepEvent, std::vector<StepEvent>> befores_;  // by the event that waits
  std::map<StepEvent, int> receivers_;                   // of transfers that orders name: the row
  std::map<StepEvent, End> arrived_;                     // of transfers that orders name
};

}  // namespace stagecraft
