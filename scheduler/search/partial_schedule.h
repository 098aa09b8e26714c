/// PartialSchedule: the tasks that a search has started so far, and what each device may start
/// next.
///
/// Devices run their tasks in the order in which they were started, each as early as it can. Bars
/// say what does not come next on a device because the search looks for it elsewhere.
/// Made and changed by OrderSearch. Not shared between threads.
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
    Ticks free = 0;                ///< idle from here on
    std::uint64_t not_next = 0;    ///< lanes by bit() whose task is not the next one here
    std::uint64_t not_taking = 0;  ///< nor the next that takes
    Ticks starts_by = kNever;      ///< something starts before
    int in_flight = 0;
    int left = 0;  ///< tasks that have not started
  };

  /// `problem` must outlive this.
  explicit PartialSchedule(const SearchProblem& problem);

  /// Starts the lane's next task as early as it can; order() has it. Clears the bars that this
  /// fulfils. Requires: may_start().
  void start(int lane);
  /// Takes the last start of the lane's device back; `before` is the device then.
  void undo_start(int lane, const Device& before);
  /// Says that none of `lanes` comes next on the device, that `taker` is not the next one there
  /// that takes, and that something starts before `starts_by`.
  void idle(std::size_t device, const std::vector<int>& lanes, int taker, Ticks starts_by);
  void undo_idle(std::size_t device, const Device& before) { devices_[device] = before; }

  [[nodiscard]] bool is_complete() const { return left_ == 0; }
  [[nodiscard]] int done(int lane) const { return done_[at(lane)]; }
  [[nodiscard]] bool has_left(int lane) const { return done_[at(lane)] < microbatches_; }
  [[nodiscard]] const Device& device(std::size_t d) const { return devices_[d]; }
  [[nodiscard]] const Device& device_of(int lane) const {
    return devices_[at(problem_.lanes[at(lane)].device)];
  }
  /// When the m-th task of a lane ends; it has started.
  [[nodiscard]] Ticks end(int lane, int m) const { return end_[at(lane)][at(m)]; }
  /// When all that the lane's next task needs of others is there; kNever while some of it has not
  /// started.
  [[nodiscard]] Ticks arrival(int lane) const;
  [[nodiscard]] bool fits_cap(int lane) const;
  [[nodiscard]] bool is_barred(int lane) const;
  /// Whether the lane has a task that may stand next on its device, and the start of all that it
  /// needs is known.
  [[nodiscard]] bool may_start(int lane) const {
    return has_left(lane) && !is_barred(lane) && fits_cap(lane) && arrival(lane) < kNever;
  }
  /// When that task would start.
  [[nodiscard]] Ticks earliest(int lane) const;
  /// Whether its starting next on its device keeps whatever comes there within the cap. A task that
  /// takes leaves one more in flight until where it stood; that is within the cap where no other
  /// such task comes between, or where all that are left fit.
  [[nodiscard]] bool leaves_cap(int lane) const;
  /// Whether the device is at its cap and can release nothing before another forward of its own.
  [[nodiscard]] bool is_stuck(std::size_t device) const;

  /// Lanes by device, in order.
  [[nodiscard]] const std::vector<std::vector<int>>& order() const { return order_; }
  /// The end of what has started.
  [[nodiscard]] Ticks makespan() const;

  /// What is left to do.
  void progress(std::vector<int>& numbers) const;
  /// Adds the bars, where there are any: states of equal numbers differ in times alone.
  void add_bars(std::vector<int>& numbers) const;
  /// All the times that decide when what is left can run, before `horizon`; equally many for
  /// states of equal progress. `from`: by device, when it can start something.
  void times(const std::vector<Ticks>& from, Ticks horizon, std::vector<std::int32_t>& times) const;

 private:
  [[nodiscard]] static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  const SearchProblem& problem_;
  int microbatches_;
  std::vector<std::uint64_t> bit_;  ///< of each lane on its device

  std::vector<int> done_;                ///< started tasks by lane
  std::vector<std::vector<Ticks>> end_;  ///< of started tasks
  std::vector<Device> devices_;
  std::vector<std::vector<int>> order_;
  int left_ = 0;
};

}  // namespace stagecraft
