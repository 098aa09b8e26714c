/// Our use of the C++ Actor Framework (CAF) 0.17: how CAF sees our messages, the three types of
/// actors, the system they live in, and `ask`, which asks an actor from a thread that is no actor.
///
/// This is our only header that includes CAF. The actor shells (crew, driver, stage worker,
/// launchers), which use CAF too, include it. No header of a user's program does.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include "stagecraft/actors/messages/messages.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

// ---- messages -------------------------------------------------------------------------------

template <class Inspector, class Name, class Int>
typename Inspector::result_type inspect(Inspector& f, StrongId<Name, Int>& id) {
  return f(id.value);
}

/// Covers every message that has a list of fields (MS-2).
template <class Inspector, class Message>
auto inspect(Inspector& f, Message& m) -> decltype(visit_fields(m, f)) {
  return visit_fields(m, f);
}

// ---- actors ---------------------------------------------------------------------------------

/// Detached: owns a thread, and the executor lives on that thread.
using PlanActor = caf::typed_actor<caf::replies_to<LoadPlan>::with<Ready>,
                                   caf::replies_to<StepOrder>::with<StepReport>,
                                   caf::replies_to<SendState>::with<StateListing>,
                                   caf::replies_to<TakeState>::with<StateTaken>,
                                   caf::replies_to<LoadVariant>::with<VariantLoaded>>;

/// Scheduled: answers while the plan thread runs a step.
using AgentActor = caf::typed_actor<caf::reacts_to<Abort>,
                                    caf::replies_to<Status>::with<StatusReply>,
                                    caf::replies_to<EndWorker>::with<WorkerEnded>>;

using DriverActor = caf::typed_actor<caf::reacts_to<Submit>,
                                     caf::reacts_to<StepReport>,
                                     caf::reacts_to<TimelineHere>,
                                     caf::reacts_to<caf::tick_atom>>;

// ---- the system -----------------------------------------------------------------------------

/// How to reach actors of other processes: over mutual TLS with these PEM files, and with
/// heartbeats at both ends (launch/port/control_port.h).
struct ControlLink {
  std::string certificate, key, authority;
  std::chrono::milliseconds interval, silence;
};

/// An actor system. The system of this process holds the actors of every trainer whose ranks are
/// threads. A system with a link belongs to a cluster of processes. The code that spawns actors
/// into a system ends them by `end`.
///
/// AH-1: a system is never destroyed. CAF 0.17 does not survive a shutdown among the destructors of
///       static objects, and a static Trainer would cause one. An idle system costs a few sleeping
///       threads.
class ActorHost {
 public:
  /// Returns the system of this process, made on first use. A child of fork() gets its own.
  [[nodiscard]] static ActorHost& of_this_process();
  /// Makes another system.
  [[nodiscard]] static ActorHost& with_link(const ControlLink& link);

  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;

  [[nodiscard]] caf::actor_system& system() { return system_; }

  /// Tells `actors` to quit and waits for them until the deadline. Leaves those behind that are
  /// still busy then, and returns their number.
  int end(const std::vector<caf::actor>& actors, Deadline deadline);

 private:
  struct Config : caf::actor_system_config {
    explicit Config(const ControlLink* link);
  };

  explicit ActorHost(const ControlLink* link);
  ~ActorHost() = delete;

  Config config_;
  caf::actor_system system_;
};

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
