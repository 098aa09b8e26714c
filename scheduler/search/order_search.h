/// OrderSearch: whether any order of each device's tasks ends by a given time.
///
/// Runs the devices forward in time. Whoever is free first takes one of the tasks that are there,
/// or stands idle until another comes. Depth first; a state from which the rest did not fit the
/// time left is remembered and not entered again. Left out is what cannot be needed:
///
/// OS-1: a task that was there when its device fell idle is not what ends the idleness: it would
///       have started then.
/// OS-2: a device is not idle for as long as a task that was there takes and that could stand in
///       the gap: all but a forward that might take the cap from a forward of another stage.
/// OS-3: behind a task for which nobody waits comes no task that could have stood in its place.
/// OS-4: a state is left when the tasks still to run on some device cannot end in time, each from
///       the earliest start that the state leaves it, and with its tail.
/// Each exchange that these rest on starts no task that others wait for later than before. Not
/// shared between threads.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <vector>

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
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::max() / 4;
  static constexpr std::size_t kMostRemembered = 4'000'000;

  struct Device {
    Ticks free = 0;            ///< idle from here on
    bool idle = false;         ///< it was decided that nothing starts at `free`
    Ticks idle_end = kNever;   ///< OS-2: something has to start before
    std::uint64_t barred = 0;  ///< OS-1, OS-3: bits of its lanes
    int in_flight = 0;
    int left = 0;
  };

  /// The state as a number of 128 bits: that two of the states met are taken for one is less likely
  /// than that the machine errs.
  struct Fingerprint {
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
  };
  struct HashFingerprint {
    std::size_t operator()(const Fingerprint& f) const { return f.low; }
  };

  [[nodiscard]] bool explore();
  [[nodiscard]] bool explore_starts(std::size_t device, Ticks now);
  [[nodiscard]] bool explore_idleness(std::size_t device, Ticks now);
  void start(int lane, Ticks now);
  void undo_start(int lane, const Device& before);
  void record();

  [[nodiscard]] bool stopped();
  [[nodiscard]] bool has_left(int lane) const { return done_[index(lane)] < microbatches_; }
  /// When all that the lane's next task needs of others is there; kNever while some of it has not
  /// started.
  [[nodiscard]] Ticks arrival(int lane) const;
  [[nodiscard]] bool fits_cap(int lane) const;
  [[nodiscard]] bool may_fill_gap(int lane) const;
  /// Whether the device is at its cap and releases nothing before another forward of its own.
  [[nodiscard]] bool is_stuck(int device) const;
  /// When the device next decides.
  [[nodiscard]] Ticks decides(std::size_t device) const;
  [[nodiscard]] bool can_end_in_time(Ticks now);
  [[nodiscard]] Fingerprint fingerprint(Ticks now) const;

  [[nodiscard]] static std::size_t index(int i) { return static_cast<std::size_t>(i); }

  const SearchProblem& problem_;
  std::function<bool()> keep_going_;
  int microbatches_;
  Ticks shortest_ = kNever;         ///< of all tasks
  std::vector<std::uint64_t> bit_;  ///< of each lane on its device
  std::vector<int> release_;        ///< by lane that takes: the lane that releases what it took

  std::vector<int> done_;  ///< started tasks by lane
  std::vector<std::vector<Ticks>>
      end_;  ///< of started tasks; of others as can_end_in_time() has it
  std::vector<Device> devices_;
  std::vector<std::vector<int>> order_;
  int left_ = 0;

  Ticks horizon_ = 0;
  std::size_t states_ = 0;
  std::size_t most_states_ = 0;
  bool stopped_ = false;
  std::unordered_map<Fingerprint, Ticks, HashFingerprint> failed_;  ///< with how much time left
  std::vector<std::vector<int>> found_;
  Ticks makespan_ = 0;
  std::vector<MachineJob> jobs_;  ///< of one bound at a time
};

}  // namespace stagecraft
