/// World runs a simulation: actors, strands and events, one after the other, in an order that is
/// drawn from a seed. Time passes when nothing can happen, and sometimes while something could, so
/// that news arrives in the midst of work.
///
/// Everything runs on the caller's thread or on strands. There is one World at a time in a process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include <caf/resumable.hpp>
#include <caf/scheduler/test_coordinator.hpp>

#include "stagecraft/actors/messages/actor_host.h"
#include "stagecraft/tests/simulate/random.h"
#include "stagecraft/tests/simulate/story.h"
#include "stagecraft/tests/simulate/strands.h"

namespace stagecraft::simulation {

/// Violation is a promise that the simulated system has broken.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Standstill is a wait that will never end.
struct Standstill : Violation {
  using Violation::Violation;
};

/// Throws a Violation unless the promise is kept.
inline void require(bool kept, const std::string& promise) {
  if (!kept) {
    throw Violation(promise);
  }
}

class World {
 public:
  static constexpr std::chrono::hours kLongest{2};

  using Time = Clock::Time;
  using Event = std::function<void()>;

  explicit World(std::uint64_t seed);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  [[nodiscard]] ActorHost& host() const { return host_; }
  [[nodiscard]] const Strands& clock() const { return strands_; }
  [[nodiscard]] Random& random() { return random_; }

  /// Calls `event` at this time, after all earlier ones.
  void at(Time when, Event event);
  /// Calls `event` when so many things have happened.
  void at_count(std::int64_t count, Event event);

  /// Does something as a process: the actors that it starts live there.
  template <class Work>
  void as(ProcessNumber process, const Work& work) {
    const caf::actor_id before = host_.system().latest_actor_id();
    const ClockOfThread scope(strands_.clock_of(process));
    work();
    own_since(before, process);
  }
  /// Says that an actor lives in this process.
  void own(caf::actor_id actor, ProcessNumber process) { owners_[actor] = process; }
  /// Lets nothing happen in a process until it is continued.
  void stop(ProcessNumber process) { stopped_.insert(process); }
  void resume(ProcessNumber process) { stopped_.erase(process); }
  [[nodiscard]] bool is_stopped(ProcessNumber process) const { return stopped_.contains(process); }
  /// As Strands::shift_clock.
  void shift_clock(ProcessNumber process, Time::duration span) {
    strands_.shift_clock(process, span);
  }

  /// Ends the driver's process: its program is thrown ProcessEnded where it waits.
  void end_driver() { strands_.end(0); }
  /// Lets the program go on, as that of another driver.
  void begin_driver() { strands_.begin(0); }
  [[nodiscard]] bool has_driver() const { return !strands_.has_ended(0); }

  /// Runs the driver's program to its end, and then all that is left to do. Rethrows its exception.
  /// Standstill: it waits for something that cannot happen, does not end within kLongest, or leaves
  /// a plan thread; no other World can follow.
  void run(const std::function<void()>& program);

  /// Adds an event to the story.
  void tell(const std::string& who, const std::string& what);
  [[nodiscard]] const Story& story() const { return story_; }
  /// Counts what has happened.
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] Time::duration since_begin() const { return clock().now() - begun_; }

 private:
  /// Does one thing that can happen now, drawn from all. Returns false if there is none.
  bool do_one();
  /// Draws a thing that can happen now: a job, a strand after all jobs, or after these the first
  /// event. Returns nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> choose();
  void pass(Time::duration span);
  /// Lets time pass until something can happen. Returns false if nothing ever will.
  bool pass_time();
  /// Says that all actors that were started after this one live in this process.
  void own_since(caf::actor_id before, ProcessNumber process);
  void run_job(caf::resumable* job);
  [[nodiscard]] bool can_run(caf::resumable* job) const;
  [[nodiscard]] bool can_run(const Strands::Strand& strand) const;
  /// Returns the process in which an actor lives: the driver's unless it has another owner.
  [[nodiscard]] ProcessNumber owner_of(caf::actor_id actor) const;

  ActorHost& host_;
  caf::scheduler::test_coordinator& scheduler_;
  Strands strands_;
  Random random_;
  Story story_;
  const Time begun_;
  std::map<std::pair<Time, std::int64_t>, Event> events_;
  std::int64_t last_event_ = 0;
  std::multimap<std::int64_t, Event> counted_;
  std::map<caf::actor_id, ProcessNumber> owners_;
  std::map<caf::actor_id, Strands::Strand*> plan_threads_;  ///< their strands, each its own
  std::vector<caf::actor_id> ended_;                        ///< plan threads whose strands are free
  std::set<ProcessNumber> stopped_;
  std::vector<std::size_t> candidates_;  ///< of the choice
  std::int64_t count_ = 0;
};

}  // namespace stagecraft::simulation
