/// Strands are the threads of a simulation. One of them runs at a time, or the simulation itself.
///
/// A strand runs until its work ends or waits by this clock. The simulation then does something
/// else, and lets the strand continue when its condition is true or its time has come. So code that
/// blocks needs no change to be simulated, and runs the same way every time. A thread that it
/// starts by its clock (Clock::start) is another strand of the same process.
/// BT-1: only one thread runs at any time, so conditions are tested without their locks.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include <caf/detail/test_actor_clock.hpp>

#include "stagecraft/base/clock.h"

namespace stagecraft::simulation {

/// A process of the simulation; the driver's is 0.
using ProcessNumber = int;

/// ProcessEnded unwinds a strand whose process has ended. It is no error, so that nobody takes it
/// for one of the work.
struct ProcessEnded {};

/// InDestructor says, while it exists, that its strand runs a destructor, out of which nothing may
/// be thrown: waits of an ended process return at once.
struct InDestructor {
  InDestructor() { ++count; }
  ~InDestructor() { --count; }
  InDestructor(const InDestructor&) = delete;
  InDestructor& operator=(const InDestructor&) = delete;

  static thread_local int count;
};

class Strands {
 public:
  class Strand;
  using Time = Clock::Time;

  /// `time`: the clock of the simulated actors, whose time is this one's.
  explicit Strands(const caf::detail::test_actor_clock& time);
  Strands(const Strands&) = delete;
  Strands& operator=(const Strands&) = delete;
  /// Requires: no strand has work.
  ~Strands();

  [[nodiscard]] Time now() const { return time_.current_time; }
  /// Returns the clock of a process, which starts strands of it. Clocks of processes have nothing
  /// in common with each other, nor with now().
  /// Requires of a wait: the caller is on a strand, unless the condition is true or the time has
  /// come.
  [[nodiscard]] std::shared_ptr<const Clock> clock_of(ProcessNumber process);
  /// Sets the clock of a process ahead, or back by as long as the process has stood still.
  void shift_clock(ProcessNumber process, Time::duration span);

  /// Takes a strand that nobody has.
  [[nodiscard]] Strand& take(ProcessNumber process);
  /// Gives it back. Requires: it has no work.
  static void give_back(Strand& strand);
  /// Gives work to a strand that was taken and has none. It can continue, and begins then.
  static void prepare(Strand& strand, std::function<void()> work);
  /// Lets a strand continue until it waits or its work ends.
  static void resume(Strand& strand);

  /// Returns how many strands there are, and one of them.
  [[nodiscard]] std::size_t count() const { return strands_.size(); }
  [[nodiscard]] Strand& at(std::size_t i) const { return *strands_[i]; }
  /// Returns whether a strand has work and can continue.
  [[nodiscard]] bool is_ready(const Strand& strand) const;
  [[nodiscard]] static ProcessNumber process_of(const Strand& strand);
  /// Returns the process of the strand that this thread is; nothing if it is none.
  [[nodiscard]] static std::optional<ProcessNumber> process_here();

  /// Ends a process: its waits throw ProcessEnded from now on, so that its strands unwind.
  void end(ProcessNumber process) { ended_.insert(process); }
  /// Lets a process with this number begin again.
  void begin(ProcessNumber process) { ended_.erase(process); }
  [[nodiscard]] bool has_ended(ProcessNumber process) const { return ended_.contains(process); }

  /// Returns when the first wait of these processes runs out; nothing if none does.
  [[nodiscard]] std::optional<Time> next_deadline(
      const std::function<bool(ProcessNumber)>& of) const;

 private:
  class ProcessClock;
  class StrandThread;

  [[nodiscard]] const std::shared_ptr<ProcessClock>& process_clock(ProcessNumber process);

  const caf::detail::test_actor_clock& time_;
  std::map<ProcessNumber, std::shared_ptr<ProcessClock>> clocks_;
  std::vector<std::unique_ptr<Strand>> strands_;
  std::set<ProcessNumber> ended_;
};

/// Waits on a strand until the condition is true.
void wait_on_strand(const std::function<bool()>& condition);

/// Waits on a strand for so long, by its clock.
void pause_strand(Clock::Time::duration span);

}  // namespace stagecraft::simulation
