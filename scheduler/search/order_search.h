/// OrderSearch: whether any order of each device's tasks ends by a given time.
///
/// Depth first over what a device does next. The device is the one that can have its next task done
/// first, by C: whatever has not started elsewhere ends no earlier, so nothing else comes before C.
/// Left out is what cannot be needed:
///
/// OS-1: what comes next starts before C, for else the task that is done by C fits in front of it.
///       Only where that task takes memory might it not fit the cap: then the device may also wait
///       for another that takes memory, but no longer than any task takes that keeps the cap.
/// OS-2: a state is left when the tasks still to run on some device cannot end in time, each from
///       the earliest start that the state leaves it, and with its tail.
/// OS-3: a state is left when one of equal progress that has nothing later has failed
///       (failed_states.h).
/// Each exchange that these rest on stays among the orders that the state at hand still looks for,
/// so that a state that failed has failed whatever was left out elsewhere. Source: the active
/// schedules of Giffler and Thompson, "Algorithms for solving production-scheduling problems"
/// (1960), with a cap. Not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "stagecraft/scheduler/search/failed_states.h"
#include "stagecraft/scheduler/search/partial_schedule.h"
#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

class OrderSearch {
 public:
  enum class Verdict { Found, None, Unknown };

  /// `keep_going`: asked now and then; false ends the search with Unknown. May be empty.
  /// `problem` must outlive this.
  OrderSearch(const SearchProblem& problem, std::function<bool()> keep_going);

  /// Looks for an order that ends by `horizon`, at most through `states` states.
  [[nodiscard]] Verdict run(Ticks horizon, std::size_t states);

  /// What run() found: lanes by device, in order.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return found_; }
  [[nodiscard]] Ticks makespan() const { return makespan_; }
  /// States entered, in all runs.
  [[nodiscard]] std::size_t states() const { return states_; }

 private:
  [[nodiscard]] bool explore();
  /// The lane whose next task can be done first; nothing where all wait for each other.
  [[nodiscard]] std::optional<int> first_done() const;
  /// What comes next on the lane's device, where its task is done first.
  [[nodiscard]] bool explore_next(int first);
  /// The lanes whose next task can start on the device before `end`, as they are tried.
  [[nodiscard]] std::vector<int> turns_before(std::size_t device, Ticks end) const;
  /// None of `turns` comes next.
  [[nodiscard]] bool explore_idleness(int first, const std::vector<int>& turns);
  [[nodiscard]] bool explore_start(int lane);
  [[nodiscard]] bool stopped();
  /// When the lane's next task can be done. Requires: may_start().
  [[nodiscard]] Ticks done_at(int lane) const;
  /// Sets from_; false where a device would be idle for longer than it may. `first`: first_done().
  [[nodiscard]] bool set_from(int first);
  /// When what must be released before the m-th task of a lane that takes can have been.
  [[nodiscard]] Ticks releases_end(const Lane& lane, int m);
  [[nodiscard]] bool can_end_in_time();
  /// Whether jobs_ end in time because those did that the device had when it was last looked at.
  [[nodiscard]] bool fit(std::size_t device) const;

  [[nodiscard]] static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const SearchProblem& problem_;
  std::function<bool()> keep_going_;
  PartialSchedule state_;
  FailedStates failed_;

  Ticks horizon_ = 0;
  std::size_t states_ = 0;
  std::size_t most_states_ = 0;
  bool stopped_ = false;
  std::vector<std::vector<int>> found_;
  Ticks makespan_ = 0;

  std::vector<std::vector<MachineJob>> fitting_;  ///< by device: jobs that end in time

  // Of one state at a time.
  std::vector<Ticks> from_;              ///< by device: nothing starts there before
  std::vector<std::vector<Ticks>> end_;  ///< by lane and microbatch: the earliest there can be
  std::vector<MachineJob> jobs_;
  std::vector<Ticks> ends_;
  std::vector<int> progress_;
  std::vector<std::int32_t> times_;
};

}  // namespace stagecraft
