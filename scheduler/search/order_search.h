/// OrderSearch decides whether some order of each device's tasks ends by a given time.
///
/// It searches depth first over the next task of a device. It picks the device that can finish its
/// next task first, at time C: a task that has not started on any other device ends no earlier, so
/// no other task ends before C. It leaves out choices that cannot be needed:
///
/// OS-1: the next task starts before C; otherwise the task that ends at C fits before it. Only if
///       that task takes memory might it not fit the cap: then the device may also wait for another
///       task that takes memory, but no longer than any such task takes that keeps the cap.
/// OS-2: a state is left if the remaining tasks of some device cannot end in time, each from its
///       earliest start in that state and with its tail.
/// OS-3: a state is left if a state of equal progress with no later time has failed
///       (failed_states.h).
/// Each exchange that proves these rules leads to another order that the current state still
/// covers. So a failed state stays failed for all choices that were left out elsewhere. Source: the
/// active schedules of Giffler and Thompson, "Algorithms for solving production-scheduling
/// problems" (1960), with a cap. It is not shared between threads.
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

  /// `keep_going`: called from time to time; false ends the search with Unknown. May be empty.
  /// `problem` must outlive this object.
  OrderSearch(const SearchProblem& problem, std::function<bool()> keep_going);

  /// Looks for an order that ends by `horizon`, through at most `states` states.
  [[nodiscard]] Verdict run(Ticks horizon, std::size_t states);

  /// Returns the order that run() found: lanes by device, in order.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return found_; }
  [[nodiscard]] Ticks makespan() const { return makespan_; }
  /// Returns the number of states entered in all runs.
  [[nodiscard]] std::size_t states() const { return states_; }

 private:
  [[nodiscard]] bool explore();
  /// Returns the lane whose next task can end first; nothing if all wait for each other.
  [[nodiscard]] std::optional<int> first_done() const;
  /// Tries the next tasks on the device of `first`, the lane whose task can end first.
  [[nodiscard]] bool explore_next(int first);
  /// Returns the lanes whose next task can start on the device before `end`, in the order of the
  /// tries.
  [[nodiscard]] std::vector<int> turns_before(std::size_t device, Ticks end) const;
  /// Tries the case that none of `turns` comes next.
  [[nodiscard]] bool explore_idleness(int first, const std::vector<int>& turns);
  [[nodiscard]] bool explore_start(int lane);
  [[nodiscard]] bool stopped();
  /// Returns the time at which the lane's next task can end. Requires: may_start().
  [[nodiscard]] Ticks done_at(int lane) const;
  /// Sets from_. Returns false if a device would be idle longer than allowed. `first`:
  /// first_done().
  [[nodiscard]] bool set_from(int first);
  /// Returns the time by which the releases before the m-th task of a lane that takes memory can
  /// have ended.
  [[nodiscard]] Ticks releases_end(const Lane& lane, int m);
  [[nodiscard]] bool can_end_in_time();
  /// Returns whether jobs_ end in time because the device's jobs at the previous look did.
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

  // Data of one state at a time.
  std::vector<Ticks> from_;              ///< by device: no task starts there earlier
  std::vector<std::vector<Ticks>> end_;  ///< by lane and microbatch: the earliest possible end
  std::vector<MachineJob> jobs_;
  std::vector<Ticks> ends_;
  std::vector<int> progress_;
  std::vector<std::int32_t> times_;
};

}  // namespace stagecraft
