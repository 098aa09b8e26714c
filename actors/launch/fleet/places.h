/// Places holds all places of a fleet, the worker in each, and the causes of the ends of workers.
///
/// A fleet makes it and shares it with the callbacks of its ports and processes. Any thread may use
/// it. Its mutex guards the places: processes join and end on threads of the control plane and of
/// the processes' watchers, while callers wait for them. The mutex is never held while a process is
/// started or ended, during a wait, or while code of others runs.
/// PC-1: a worker takes the place of the number in its certificate (worker-3), and no other. One
///       that comes by itself and has no such place here takes that of a lost worker. It is told to
///       ask again (Joined::later) while its place does not await a worker.
/// PC-2: the cause of an end is told within kMoment after the connection's end, to every caller of
///       cause_of_end, with no lock held.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/launch/fleet/place.h"
#include "stagecraft/actors/launch/fleet/place_text.h"
#include "stagecraft/actors/launch/worker_place.h"
#include "stagecraft/base/clock.h"

namespace stagecraft {

/// PlaceTurn is the worker of a place, unless another has taken its place.
struct PlaceTurn {
  int place = 0;
  std::int64_t incarnation = 0;
};

/// MissingWorkers tells a waiting thread which workers are missing.
struct MissingWorkers {
  std::vector<int> places;  ///< whose workers have not joined
  std::size_t awaited = 0;  ///< number of workers that the fleet wants
  std::string failure;  ///< "process 12 ended with exit status 1", before it had joined; or empty
  std::string refusal;  ///< why the last worker was not admitted
  std::uint64_t version = 0;
};

class Places {
 public:
  using StoodStill = std::function<std::chrono::milliseconds(std::chrono::milliseconds span)>;

  /// `remind`: arranges a call of look() after a moment (kMoment), on any thread. `stood_still`:
  /// returns the longest time that this process stood still and that ended within this span before
  /// now (Standstills).
  Places(SpawnOptions options,
         std::shared_ptr<const WorkerWay> way,
         std::shared_ptr<const Clock> clock,
         std::function<void()> remind,
         StoodStill stood_still);
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // ---- workers are wanted, started and awaited ------------------------------------------------

  /// Makes places 0 to places - 1. Returns those that are empty, with their incarnations.
  [[nodiscard]] std::vector<PlaceTurn> grow_to(int places);
  /// Calls for a worker in an empty place.
  void call(int place);
  /// Returns the places whose workers start now; each is returned once (FL-4).
  [[nodiscard]] std::vector<PlaceTurn> take_turns();
  /// Keeps the process that was started for a turn, or ends it if the place has changed hands.
  void keep(const PlaceTurn& turn, std::unique_ptr<WorkerChild> child);
  /// Queues the place again, because its process could not be started.
  void take_back(const PlaceTurn& turn);
  /// Returns which of the workers in these places have not joined.
  [[nodiscard]] MissingWorkers missing_of(const std::vector<int>& places) const;
  /// Waits until something has changed since `seen`, at most until `when`.
  void wait_for_change(const MissingWorkers& seen, Clock::Time when) const;
  /// Ends the worker of a place and waits for its end. Returns the worker that was there, if any
  /// had joined. The place is empty then. Errors: UsageArgument for a place that does not exist.
  std::optional<FleetMember> vacate(int place);

  // ---- what happens to them -------------------------------------------------------------------

  void refused(const std::string& why);
  void let_in(const PlaceTurn& turn);
  /// Returns whether the place that the worker asks for has a worker that can be reached.
  [[nodiscard]] bool is_taken(const Join& join, const std::string& worker);
  /// Returns the place that the worker has taken; nothing if it may ask again (PC-1). `worker`: the
  /// name in its certificate. Errors: ClusterMember for a worker that asks for another's place, and
  /// for one that the fleet was to start and that no place waits for.
  [[nodiscard]] std::optional<int> join(const Join& join,
                                        const WorkerHostActor& host,
                                        const std::string& worker);
  void process_ended(const PlaceTurn& turn, const std::string& how);
  void disconnected(const caf::actor_addr& host);
  /// Ends a worker for this reason, unless `toward`, the other end of a cut way, was ended: one of
  /// the two is enough.
  void condemn(const PlaceTurn& turn, const PlaceTurn& toward, const std::string& why);
  /// Ends all workers that have joined, because the port of this process has failed for this
  /// reason.
  void lose_port(const std::string& why);
  /// Settles the ends of workers that have been silent for a moment.
  void look();

  // ---- who is there ---------------------------------------------------------------------------

  /// Returns how many places there are.
  [[nodiscard]] int count() const;
  /// Returns the worker of a place; nothing before it has joined and after its end.
  [[nodiscard]] std::optional<FleetMember> member(int place) const;
  /// Returns the connected worker with this node, or with this key of its data port.
  [[nodiscard]] std::optional<FleetMember> member_at(const caf::node_id& node) const;
  [[nodiscard]] std::optional<FleetMember> member_with(const std::string& key) const;
  /// Returns the current worker of a place; without process and address while there is none.
  [[nodiscard]] WorkerPlace who(int place) const;
  /// Returns why the port of this process has failed; empty if it has not.
  [[nodiscard]] std::string loss_of_port() const;
  /// Returns the incarnation of a place.
  [[nodiscard]] std::int64_t incarnation(int place) const;
  /// Returns "process 4711 on node-b".
  [[nodiscard]] std::string name_of(int place) const;
  /// Completes when the worker of this incarnation has ended: with the cause, or with "" once it
  /// was replaced (PC-2).
  [[nodiscard]] Future<std::string> cause_of_end(const PlaceTurn& turn) const;

 private:
  /// Settled holds causes to tell once the lock is released.
  class Settled {
   public:
    Settled() = default;
    ~Settled();
    Settled(const Settled&) = delete;
    Settled& operator=(const Settled&) = delete;

    void add(const Place& place, std::string text) {
      all_.emplace_back(place.cause(), std::move(text));
    }

   private:
    std::vector<std::pair<std::shared_ptr<Promise<std::string>>, std::string>> all_;
  };

  // The following functions require the mutex.
  [[nodiscard]] Place& at(int place) { return places_.at(static_cast<std::size_t>(place)); }
  [[nodiscard]] const Place& at(int place) const {
    return places_.at(static_cast<std::size_t>(place));
  }
  /// Returns the place; null if another worker has taken it.
  [[nodiscard]] Place* of(const PlaceTurn& turn);
  /// Returns the place that a worker may wish; -1: none. Errors: ClusterMember for a wish that is
  /// another worker's place.
  [[nodiscard]] int place_for(const Join& join, const std::string& worker);
  template <class Condition>
  [[nodiscard]] std::optional<FleetMember> find(Condition condition) const;
  /// Adds the cause of the place's end, if it is settled.
  void settle(int place, Settled& settled) const;
  void changed();

  const SpawnOptions options_;
  const std::shared_ptr<const WorkerWay> way_;
  const PlaceText text_{options_, *way_};
  const std::shared_ptr<const Clock> clock_;
  const std::function<void()> remind_;
  const StoodStill stood_still_;

  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t version_ = 0;  ///< counts changes
  std::deque<Place> places_;
  std::string refusal_;    ///< why the last worker was not admitted
  std::string port_loss_;  ///< why the port has failed
};

}  // namespace stagecraft
