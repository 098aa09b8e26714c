/// PartialSchedule holds the tasks that a search has started so far, and computes which tasks each
/// device may start next.
///
/// Devices run their tasks in the order in which they were started, each as early as possible. Bars
/// forbid a next task on a device because the search tries it elsewhere. OrderSearch makes and
/// changes it. It is not shared between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "stagecraft/scheduler/search/search_problem.h"

namespace stagecraft {

class PartialSchedule {
 public:
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::max() / 4;

  struct Device {
    Ticks free = 0;                ///< idle from this time on
    std::uint64_t not_next = 0;    ///< lanes by bit() whose task must not be the next one here
    std::uint64_t not_taking = 0;  ///< lanes whose task must not be the next one that takes memory
    Ticks starts_by = kNever;      ///< some task starts before this time
    int in_flight = 0;
    int left = 0;  ///< tasks that have not started
  };

  /// `problem` must outlive this object.
  explicit PartialSchedule(const SearchProblem& problem);

  /// Starts the lane's next task as early as possible and adds it to order(). Clears the bars that
  /// this satisfies. Requires: may_start().
  void start(int lane);
  /// Undoes the last start of the lane's device; `before` is the device's state before it.
  void undo_start(int lane, const Device& before);
  /// Forbids `lanes` as the next on the device and `taker` as the next one there that takes memory,
  /// and requires that a task starts before `starts_by`.
  void idle(std::size_t device, const std::vector<int>& lanes, int taker, Ticks starts_by);
  void undo_idle(std::size_t device, const Device& before) { devices_[device] = before; }

  [[nodiscard]] bool is_complete() const { return left_ == 0; }
  [[nodiscard]] int done(int lane) const { return done_[at(lane)]; }
  [[nodiscard]] bool has_left(int lane) const { return done_[at(lane)] < microbatches_; }
  [[nodiscard]] const Device& device(std::size_t d) const { return devices_[d]; }
  [[nodiscard]] const Device& device_of(int lane) const {
    return devices_[at(problem_.lanes[at(lane)].device)];
  }
  /// Returns the end of the m-th task of a lane. Requires: it has started.
  [[nodiscard]] Ticks end(int lane, int m) const { return end_[at(lane)][at(m)]; }
  /// Returns the time at which all inputs of the lane's next task from other lanes have arrived;
  /// kNever if some of them have not started.
  [[nodiscard]] Ticks arrival(int lane) const;
  [[nodiscard]] bool fits_cap(int lane) const;
  [[nodiscard]] bool is_barred(int lane) const;
  /// Returns whether the lane has a task that may be the next on its device and whose inputs have
  /// all started.
  [[nodiscard]] bool may_start(int lane) const {
    return has_left(lane) && !is_barred(lane) && fits_cap(lane) && arrival(lane) < kNever;
  }
  /// Returns the time at which that task would start.
  [[nodiscard]] Ticks earliest(int lane) const;
  /// Returns whether the device can keep the cap with any continuation if the lane's task starts
  /// next. A task that takes memory leaves one more in flight up to its original place. That is
  /// within the cap if no other such task comes between, or if all remaining ones fit.
  [[nodiscard]] bool leaves_cap(int lane) const;
  /// Returns whether the device is at its cap and can release nothing before another forward of its
  /// own.
  [[nodiscard]] bool is_stuck(std::size_t device) const;

  /// Returns lanes by device, in order.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return order_; }
  /// Returns the end of the started tasks.
  [[nodiscard]] Ticks makespan() const;

  /// Writes the progress, which determines the remaining work.
  void progress(std::vector<int>& numbers) const;
  /// Appends the bars, if there are any. Then states of equal numbers differ only in times.
  void add_bars(std::vector<int>& numbers) const;
  /// Writes all times before `horizon` that determine when the remaining tasks can run; the same
  /// number of times for states of equal progress. `from`: by device, when it can start a task.
  void times(const std::vector<Ticks>& from, Ticks horizon, std::vector<std::int32_t>& times) const;

 private:
  [[nodiscard]] static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const SearchProblem& problem_;
  int microbatches_;
  std::vector<std::uint64_t> bit_;  ///< by lane: its bit on its device

  std::vector<int> done_;                ///< started tasks by lane
  std::vector<std::vector<Ticks>> end_;  ///< of started tasks
  std::vector<Device> devices_;
  std::vector<std::vector<int>> order_;
  int left_ = 0;
};

}  // namespace stagecraft
