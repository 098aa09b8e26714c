/// Network carries what the processes of a simulation send each other: control messages of actors,
/// and tensors.
///
/// It keeps what TCP keeps, and so CAF and the data port. The driver's process has the number 0,
/// and one control connection with each other process. Tensors go from each process to each other
/// one by a connection of their own (a way of the data plane).
/// NW-1: what a process has sent before its end still arrives, or is lost from some instant on, on
///       each way by itself. The news of its end comes after all that arrives on the control plane.
/// NW-2: a control connection that breaks stays broken. Each end finds out at its own time, at most
///       a moment after kSilence, and takes nothing that arrives later.
/// NW-3: a way of the data plane is connected again after a break. What was on it may be lost; the
///       rest keeps its order, and nothing comes twice. The receiver finds a loss with the next
///       tensor (DP-2), the sender finds the break (DP-6), a moment later.
#pragma once

#include <array>
#include <cstdint>
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
  /// Disturbance says, as long as it exists, that a fault delays or loses something.
  using Disturbance = std::shared_ptr<const void>;

  /// The time after which a process gives up another one that it does not hear.
  static constexpr std::chrono::seconds kSilence{10};

  /// Discoveries are called in a process when it finds out something. The fault disturbs at least
  /// until they return.
  struct Discoveries {
    /// The driver: its connection with the process has ended, and so have its handles.
    std::function<void(ProcessNumber)> gave_up = [](ProcessNumber) {};
    /// The process: its connection with the driver has ended.
    std::function<void(ProcessNumber)> lost_driver = [](ProcessNumber) {};
    /// `to`: tensors of `from` were lost on their way.
    std::function<void(ProcessNumber from, ProcessNumber to)> broke = [](ProcessNumber,
                                                                         ProcessNumber) {};
    /// `from`: its tensors may not have reached `to`.
    std::function<void(ProcessNumber from, ProcessNumber to)> cut = [](ProcessNumber,
                                                                       ProcessNumber) {};
  };

  /// Views the world.
  explicit Network(World& world) : world_(world) { disturbed_until_.fill(world.clock().now()); }
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  void report_to(Discoveries discoveries) { discoveries_ = std::move(discoveries); }

  /// Calls `arrive` in process `to` later, unless one of the two has ended, or their connection.
  void send(ProcessNumber from, ProcessNumber to, Plane plane, Arrive arrive);

  /// Calls `event` in a process at this time, or when it is continued, unless it has ended.
  void in(ProcessNumber process, World::Time when, Arrive event);

  /// Returns a handle of `actor`, which lives in `there`, for actors in `here`.
  [[nodiscard]] caf::strong_actor_ptr handle(const caf::strong_actor_ptr& actor,
                                             ProcessNumber there,
                                             ProcessNumber here);

  /// Returns the node of a process, as its handles have it.
  [[nodiscard]] caf::node_id node_of(ProcessNumber process) const;
  /// Returns the process of the actor that a handle stands for.
  [[nodiscard]] static ProcessNumber process_of(const caf::strong_actor_ptr& handle);
  /// Returns all actors of a process of which others have handles.
  [[nodiscard]] std::vector<caf::actor> actors_of(ProcessNumber process) const;

  /// Begins a process, which is connected with the driver.
  void begin(ProcessNumber process) { connections_[process] = {}; }
  /// Ends a process other than the driver's at once: nothing arrives there any more. The driver
  /// learns it by the ends of its handles.
  void end(ProcessNumber process);
  [[nodiscard]] bool has_ended(ProcessNumber process) const { return ended_.contains(process); }
  /// Ends all connections of the driver's process, which finds out nothing.
  void end_driver();

  /// Stops a process for so long. Others give it up after kSilence. `with_clock`: its clock stands
  /// still as well, as on a machine that was suspended.
  void stop(ProcessNumber process, World::Time::duration span, bool with_clock);
  /// Lets the clock of a process jump. Timers of its actors do not jump with it.
  void set_clock_ahead(ProcessNumber process, World::Time::duration span);
  /// Returns when the driver's process was continued, or its clock has jumped, the last time; long
  /// ago if it never was.
  [[nodiscard]] World::Time driver_continued() const { return driver_continued_; }

  /// Delays all that these two send each other on this plane from now on until this time.
  void hold(ProcessNumber a, ProcessNumber b, Plane plane, World::Time until);
  /// Lets nothing from `from` reach `to` until this time. Each end of a connection that needs it
  /// gives up after kSilence.
  void block(ProcessNumber from, ProcessNumber to, World::Time until);
  /// Calls `event` when `from` has sent so many tensors more to `to`, which are on their way then.
  void after_tensors(ProcessNumber from, ProcessNumber to, int count, Arrive event);
  /// Breaks the process's connection with the driver. Returns whether it stood.
  bool break_control(ProcessNumber process);
  /// Breaks the way of tensors. Returns whether it was in use.
  bool break_data(ProcessNumber from, ProcessNumber to);

  /// Returns whether a fault disturbs this plane whose end is not known yet.
  [[nodiscard]] bool is_disturbed(Plane plane) const { return disturbances_[index(plane)] > 0; }
  /// Returns when the last fault so far ceases to delay or lose anything on this plane: at the
  /// earliest now, if it is disturbed.
  [[nodiscard]] World::Time disturbed_until(Plane plane) const;
  /// Returns when the last tensor that takes longer than usual arrives, by sender and receiver.
  [[nodiscard]] const std::map<std::pair<ProcessNumber, ProcessNumber>, World::Time>& late_tensors()
      const {
    return late_tensors_;
  }
  /// Returns when faults so far cease to make messages between the driver and this process late.
  [[nodiscard]] World::Time messages_late_until(ProcessNumber process) const;
  /// Notes that a fault lasts so long, on one plane or on both.
  void disturb(Plane plane, World::Time until);
  void disturb(World::Time until);
  /// Notes that a fault lasts as long as what this returns.
  [[nodiscard]] Disturbance disturb(const std::vector<Plane>& planes = {Plane::Control,
                                                                        Plane::Data});

  [[nodiscard]] World& world() { return world_; }

 private:
  using Way = std::tuple<ProcessNumber, ProcessNumber, Plane>;

  /// Connection is the control connection of a process with the driver.
  struct Connection {
    bool is_broken = false;
    bool has_ended_here = false;   ///< at the driver's end
    bool has_ended_there = false;  ///< at the process's end
  };
  /// Stream holds what goes one way on the data plane.
  struct Stream {
    std::int64_t sent = 0, arrived = 0;
    World::Time lost_from{};      ///< what arrives later is lost,
    std::int64_t lost_up_to = 0;  ///< up to this number
    bool is_broken = false;       ///< the receiver takes nothing more
    bool expects_cut = false, is_reported = false;
  };
  /// Awaited is an event that comes when a tensor is sent.
  struct Awaited {
    std::int64_t number;  ///< of the tensor in its stream
    Arrive event;
  };
  /// Stopped is a process that does nothing.
  struct Stopped {
    Disturbance lasts;
    std::deque<Arrive> arrived;
  };

  static std::size_t index(Plane plane) { return static_cast<std::size_t>(plane); }
  void arrive(const Way& way, std::int64_t number, const Arrive& arrive);
  [[nodiscard]] bool takes(const Way& way, std::int64_t number);
  void run_in(ProcessNumber process, const Arrive& event);
  void resume(ProcessNumber process);
  void tell_end(ProcessNumber from, ProcessNumber to, Arrive learned);
  void give_up(ProcessNumber process);
  void lose_driver(ProcessNumber process);
  void cut_off(const Way& way);
  void expect_cut(ProcessNumber from, ProcessNumber to);
  void report_cut(ProcessNumber from, ProcessNumber to, Disturbance lasts);
  void delay_messages(ProcessNumber process, World::Time until);
  [[nodiscard]] World::Time blocked_until(ProcessNumber from, ProcessNumber to) const;
  [[nodiscard]] bool is_blocked_for_long(ProcessNumber from, ProcessNumber to) const;
  [[nodiscard]] World::Time after_silence();
  void kill_handles(ProcessNumber there, ProcessNumber here);
  void kill_handle(const caf::strong_actor_ptr& handle, const caf::error& why);
  [[nodiscard]] World::Time time_of_arrival(const Way& way);

  World& world_;
  Discoveries discoveries_;
  std::map<Way, World::Time> last_;  ///< when the last thing on this way arrives
  std::map<Way, World::Time> cuts_;  ///< what arrives later on these ways is lost
  std::map<ProcessNumber, Connection> connections_;
  std::map<std::pair<ProcessNumber, ProcessNumber>, Stream> streams_;
  std::multimap<std::pair<ProcessNumber, ProcessNumber>, Awaited> awaited_;
  std::map<std::pair<ProcessNumber, ProcessNumber>, World::Time> blocked_;  ///< until when
  std::array<World::Time, 2> disturbed_until_;                              ///< by plane
  std::array<int, 2> disturbances_{};  ///< by plane: those of no known end
  std::set<ProcessNumber> ended_;
  std::map<ProcessNumber, Stopped> stopped_;
  World::Time driver_continued_{};
  std::map<ProcessNumber, World::Time> messages_late_until_;
  std::map<std::pair<ProcessNumber, ProcessNumber>, World::Time> late_tensors_;
  /// By where the actor lives, who it is, and for whom.
  std::map<std::tuple<ProcessNumber, caf::actor_id, ProcessNumber>, caf::strong_actor_ptr> handles_;
};

}  // namespace stagecraft::simulation
