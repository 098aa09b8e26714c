/// Place is a position among the worker processes of a fleet, and the process that is in it.
///
///   Empty --call--> Queued --start--> Started --let in--> LetIn --+
///     |               |                  |                 |      |
///     +---call--> Expected               |                 |      |
///                     |                  |                 |      |
///                     +------------------+------join-------+--> Joined --condemn--> Condemned
///                                        |                 |      |                     |
///                                        +--process ends---+      +---+--connection ends
///                                                 |                   |   or process ends
///                                              Failed                 |         |
///                                                                     v         v
///                          connection ends, the process may run: Silent -----> Gone
///                                                           process ends, or kMoment passes
///   every state --vacate--> Empty, with the next incarnation
///
/// Places holds it under its lock. It has no lock, clock or texts of its own.
/// PS-1: a transition that its state does not allow changes nothing: events of a process may come
///       in any order, and more than once.
/// PS-2: the end of a worker is settled once, by the first of these: it is condemned, its process
///       ends, or it is silent for a moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "stagecraft/actors/launch/fleet/fleet_member.h"
#include "stagecraft/actors/launch/ways/worker_child.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

enum class PlaceState : std::uint8_t {
  Empty,      ///< no worker is wanted
  Queued,     ///< a worker is wanted, and starts when its turn comes (FL-4)
  Expected,   ///< a worker is wanted, and comes by itself (PC-1)
  Started,    ///< its process was started; its host may not have let it in yet
  LetIn,      ///< its host has let it in
  Failed,     ///< its process ended before it had joined
  Joined,     ///< it can be asked for ranks
  Condemned,  ///< it was told to end, and its connection stands (CUT-1, CUT-2)
  Silent,     ///< its connection has ended, and its process is not known to have ended
  Gone,       ///< it has ended, or is out of reach
};

/// PlaceEnd says how the worker of a place ended.
struct PlaceEnd {
  enum class Kind : std::uint8_t {
    Condemned,  ///< `text`: why
    Ended,      ///< `text`: how its process ended (ChildProcess::end)
    Silent,     ///< its connection has ended, and no more is known
  };
  Kind kind = Kind::Silent;
  std::string text;
};

/// The longest time between the close of a process's connections and the system's report of its
/// exit.
inline constexpr std::chrono::milliseconds kMoment{500};

class Place {
 public:
  [[nodiscard]] PlaceState state() const { return state_; }
  /// Returns how often the place has had another worker.
  [[nodiscard]] std::int64_t incarnation() const { return incarnation_; }
  /// Returns the worker that has joined, also after its end; nothing before it has joined.
  [[nodiscard]] const std::optional<FleetMember>& member() const { return member_; }
  /// Returns the child process; null for a worker that this process has not started.
  [[nodiscard]] const WorkerChild* child() const { return child_.get(); }
  /// Returns the end of the worker; nothing before it is settled.
  [[nodiscard]] const std::optional<PlaceEnd>& end() const { return end_; }

  /// Returns whether a worker may join.
  [[nodiscard]] bool is_free() const;
  /// Returns whether the worker can be reached as far as is known.
  [[nodiscard]] bool is_connected() const;
  /// Returns whether its worker has ended, or has joined and cannot be reached.
  [[nodiscard]] bool is_lost() const { return end_ || (member_ && !is_connected()); }

  /// Empty -> Queued, or Expected for a worker that comes by itself.
  void call(bool comes_by_itself);
  /// Queued -> Started.
  void start();
  /// Started -> Queued: the process could not be started.
  void take_back();
  /// Keeps the process that was started. Returns it if the place has changed hands meanwhile.
  [[nodiscard]] std::unique_ptr<WorkerChild> keep(std::unique_ptr<WorkerChild> child,
                                                  std::int64_t incarnation);
  /// Started -> LetIn.
  void let_in();
  /// Queued, Expected, Started or LetIn -> Joined. Requires: is_free().
  void join(FleetMember member);
  /// Started or LetIn -> Failed; Joined, Condemned or Silent -> Gone.
  void process_ended(const std::string& how);
  /// Joined -> Condemned. Returns whether it is.
  bool condemn(const std::string& why);
  /// Joined -> Silent if a child process may tell more, else Gone; Condemned -> Gone.
  void disconnected(Clock::Time now);
  /// Silent -> Gone, if the moment is over.
  void look(Clock::Time now);
  /// Any state -> Empty, with the next incarnation. Returns the process, which ends when it is
  /// destroyed.
  [[nodiscard]] std::unique_ptr<WorkerChild> vacate();

  /// Ends the process: kills the child, or tells the worker to end.
  void kill() const;

  /// Returns the promise of a text about the end of this incarnation's worker, for the owner of the
  /// place to complete.
  [[nodiscard]] const std::shared_ptr<Promise<std::string>>& cause() const { return cause_; }

 private:
  void settle(PlaceEnd::Kind kind, const std::string& text);

  PlaceState state_ = PlaceState::Empty;
  std::int64_t incarnation_ = 0;
  std::unique_ptr<WorkerChild> child_;
  std::optional<FleetMember> member_;
  std::optional<PlaceEnd> end_;
  Clock::Time silent_since_{};
  std::shared_ptr<Promise<std::string>> cause_ = std::make_shared<Promise<std::string>>();
};

}  // namespace stagecraft
