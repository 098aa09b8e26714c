/// Network carries what the processes of a simulation send each other: control messages of actors,
/// and tensors.
///
/// It keeps what TCP keeps, and so CAF and the data port: what one process sends another on one
/// plane arrives in order, after some time, or not at all once either has ended.
/// NW-1: what a process has sent before its end still arrives, or is lost from some instant on, on
///       each way by itself. The news of its end comes after all that arrives on the control plane.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <vector>

#include <caf/actor_proxy.hpp>

#include "stagecraft/tests/simulate/world.h"

namespace stagecraft::simulation {

enum class Plane { Control, Data };

class Network : public std::enable_shared_from_this<Network> {
 public:
  using Arrive = std::function<void()>;

  /// Views the world.
  explicit Network(World& world) : world_(world) { disturbed_until_.fill(world.clock().now()); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  /// Calls `arrive` in process `to` later, unless one of the two has ended.
  void send(ProcessNumber from, ProcessNumber to, Plane plane, Arrive arrive);

  /// Returns a handle of `actor`, which lives in `there`, for actors in `here`.
  [[nodiscard]] caf::strong_actor_ptr handle(const caf::strong_actor_ptr& actor,
                                             ProcessNumber there,
                                             ProcessNumber here);

  /// Ends a process at once, for others too: nothing arrives there any more. The driver learns it
  /// by the ends of its handles, and `learned` is called then.
  void end(ProcessNumber process, Arrive learned);
  [[nodiscard]] bool has_ended(ProcessNumber process) const { return ended_.contains(process); }

  /// Stops a process, or continues it.
  void stop(ProcessNumber process) { world_.stop(process); }
  void resume(ProcessNumber process);

  /// Delays all that these two send each other on this plane from now on until this time.
  void hold(ProcessNumber a, ProcessNumber b, Plane plane, World::Time until);

  /// Returns when the last fault so far ceases to delay or lose anything on this plane.
  [[nodiscard]] World::Time disturbed_until(Plane plane) const {
    return disturbed_until_[static_cast<std::size_t>(plane)];
  }
  /// Notes that a fault lasts so long.
  void disturb(Plane plane, World::Time until);

  [[nodiscard]] World& world() { return world_; }

 private:
  using Way = std::tuple<ProcessNumber, ProcessNumber, Plane>;

  void arrive(const Way& way, const Arrive& arrive);
  void kill_handle(const caf::strong_actor_ptr& handle, const caf::error& why);
  [[nodiscard]] World::Time time_of_arrival(const Way& way);

  World& world_;
  std::map<Way, World::Time> last_;             ///< when the last thing on this way arrives
  std::map<Way, World::Time> cuts_;             ///< what arrives later on these ways is lost
  std::array<World::Time, 2> disturbed_until_;  ///< by plane
  std::set<ProcessNumber> ended_;
  std::map<ProcessNumber, std::deque<Arrive>> held_;  ///< what has arrived at stopped processes
  /// By where the actor lives, who it is, and for whom.
  std::map<std::tuple<ProcessNumber, caf::actor_id, ProcessNumber>, caf::strong_actor_ptr> handles_;
};

}  // namespace stagecraft::simulation
