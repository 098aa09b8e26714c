/// The C++ Actor Framework 0.17 as we use it: our messages as it sees them, the three kinds of
/// actor, the system they live in, and a question asked from outside of any actor.
///
/// The one header of ours that includes CAF. Included by the actor shells (crew, driver, stage
/// worker, launchers), which spell CAF too, and by nothing that a user's program includes.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <caf/all.hpp>

#include "stagecraft/actors/messages.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

// ---- messages -------------------------------------------------------------------------------

template <class Inspector, class Name, class Int>
typename Inspector::result_type inspect(Inspector& f, StrongId<Name, Int>& id) {
  return f(id.value);
}

/// Anything with a list of fields (MS-2).
template <class Inspector, class Message>
auto inspect(Inspector& f, Message& m) -> decltype(visit_fields(m, f)) {
  return visit_fields(m, f);
}

// ---- actors ---------------------------------------------------------------------------------

/// Detached: owns a thread, on which the executor lives.
using PlanActor = caf::typed_actor<caf::replies_to<LoadPlan>::with<Ready>,
                                   caf::replies_to<StepOrder>::with<StepReport>,
                                   caf::replies_to<SendState>::with<StateListing>,
                                   caf::replies_to<TakeState>::with<StateTaken>,
                                   caf::replies_to<LoadVariant>::with<VariantLoaded>>;

/// Scheduled: answers while the plan thread is inside a step.
using AgentActor = caf::typed_actor<caf::reacts_to<Abort>,
                                    caf::replies_to<Status>::with<StatusReply>,
                                    caf::replies_to<EndWorker>::with<WorkerEnded>>;

using DriverActor = caf::typed_actor<caf::reacts_to<Submit>,
                                     caf::reacts_to<StepReport>,
                                     caf::reacts_to<TimelineHere>,
                                     caf::reacts_to<caf::tick_atom>>;

// ---- the system -----------------------------------------------------------------------------

/// How actors of other processes are reached: over mutual TLS, with these files in PEM, and with
/// heartbeats at both ends (launch/control_port.h).
struct ControlLink {
  std::string certificate, key, authority;
  std::chrono::milliseconds interval, silence;
};

/// An actor system. One of this process has every trainer's actors whose ranks are threads; one
/// that has a link belongs to a cluster of processes. Whoever spawns into it ends what it spawned
/// by `end`.
///
/// AH-1: never destroyed. CAF 0.17 does not survive being shut down among the destructors of static
///       objects, where a static Trainer would take it; an idle system is a few sleeping threads.
class ActorHost {
 public:
  /// Made on first use; a child of fork() gets one of its own.
  [[nodiscard]] static ActorHost& of_this_process();
  /// Makes another one.
  [[nodiscard]] static ActorHost& with_link(const ControlLink& link);

  ActorHost(const ActorHost&) = delete;
  ActorHost& operator=(const ActorHost&) = delete;

  [[nodiscard]] caf::actor_system& system() { return system_; }

  /// Tells `actors` to quit and waits for them. Actors still busy at the deadline are left behind:
  /// returns how many.
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

/// Asks `actor` from a thread that is no actor. The future fails with ClusterMember when the actor
/// is gone, or goes before it has answered, and with ClusterTimeout when it has not answered within
/// `limit`; `what` names it in the message.
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
    // CAF fails no request whose receiver was in a process that is gone.
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
