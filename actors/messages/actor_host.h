/// ActorHost is the system in which actors live. Threads that are no actors use it too: `ask` asks
/// an actor, `call_later` sets a timer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stagecraft/actors/messages/caf_types.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

/// ControlLink says how to reach actors of other processes: over mutual TLS with these PEM files,
/// and with heartbeats at both ends (launch/port/control_port.h).
struct ControlLink {
  std::string certificate, key, authority;
  std::chrono::milliseconds interval, silence;
};

/// ActorHost is an actor system. The system of this process holds the actors of every trainer whose
/// ranks are threads. A system with a link belongs to a cluster of processes. The code that spawns
/// actors into a system ends them by `end`.
///
/// AH-1: a system is never destroyed. CAF 0.17 does not survive a shutdown among the destructors of
///       static objects, and a static Trainer would cause one. An idle system costs a few sleeping
///       threads.
/// AH-2: where a system cannot have its threads, that is an error of its maker.
class ActorHost {
 public:
  /// Returns the system of this process, made on first use. A child of fork() gets its own.
  /// Errors: DeviceOutOfMemory, as those of with_link().
  [[nodiscard]] static ActorHost& of_this_process();
  /// Makes another system.
  [[nodiscard]] static ActorHost& with_link(const ControlLink& link);
  /// Makes a system that has no threads: a simulation runs its actors, message by message, and lets
  /// its time pass (caf::scheduler::test_coordinator).
  [[nodiscard]] static ActorHost& simulated();

  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;

  [[nodiscard]] caf::actor_system& system() { return system_; }
  [[nodiscard]] bool is_simulated() const { return is_simulated_; }

  /// Tells `actors` to quit and waits for them for `patience`, by the current clock. Leaves those
  /// that are still busy, and returns their number.
  int end(const std::vector<caf::actor>& actors, Clock::Time::duration patience);

 private:
  struct Config : caf::actor_system_config {
    explicit Config(const ControlLink* link, bool simulated);
  };

  explicit ActorHost(const ControlLink* link, bool simulated = false);
  ~ActorHost() = delete;

  const bool is_simulated_;
  Config config_;
  caf::actor_system system_;
};

/// Calls `work` once after `delay`, on a thread of the system. It must not block.
void call_later(ActorHost& host, std::chrono::milliseconds delay, std::function<void()> work);

/// Asks `actor` from a thread that is no actor. The future fails with ClusterMember if the actor
/// has ended or ends before it answers, and with ClusterTimeout if it does not answer within
/// `limit`. `what` names the actor in the message.
template <class Reply, class Actor, class Message>
Future<Reply> ask(ActorHost& host,
                  const Actor& actor,
                  const std::string& what,
                  std::chrono::milliseconds limit,
                  Message message) {
  auto promise = std::make_shared<Promise<Reply>>();
  Future<Reply> answer = promise->future();
  host.system().spawn([=](caf::event_based_actor* self) {
    const Error ended(Errc::ClusterMember, what + " has ended and cannot answer");
    // CAF does not fail a request if the receiver's process is gone, so monitor the actor.
    self->set_down_handler([self, promise, ended](const caf::down_msg&) {
      promise->set_error(ended);
      self->quit();
    });
    self->monitor(actor);
    self->request(actor, caf::timespan(limit), message)
        .then(
            [self, promise](Reply& reply) {
              promise->set_value(std::move(reply));
              self->quit();
            },
            [self, promise, what, ended](const caf::error& e) {
              promise->set_error(
                  e == caf::sec::request_timeout
                      ? Error(Errc::ClusterTimeout, what + " has not answered in time")
                      : ended);
              self->quit();
            });
  });
  return answer;
}

}  // namespace stagecraft
