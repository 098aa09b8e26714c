/// RemoteActors is the driver's side of a cluster's remote actors: it makes them, calls their
/// methods, and knows which values live where, also those that training steps leave on ranks.
///
/// RemoteActor<T> is the typed handle over it. The cluster, handles and futures share it. Any
/// thread may use it; a mutex guards the tables, and no future completes and no message goes while
/// it is held.
/// RA-1: every call ends once: with its outcome, by its deadline, or with WorkerLost and the cause
///       when its rank is lost. So does a value that stays on a rank and has not been read.
/// RA-2: a value stays on its rank until its last future has gone. To another call it goes from
///       rank to rank, and never through the driver.
/// RA-3: a rank's first actor, or first trainer whose steps leave values, starts the rank's side.
///       After the rank was replaced, the next actor or step starts a new one, with the next
///       generation.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/actors/remote/on.h"
#include "stagecraft/actors/remote/wire/message.h"
#include "stagecraft/base/clock.h"
#include "stagecraft/base/error.h"
#include "stagecraft/futures/future.h"
#include "stagecraft/futures/origin.h"

namespace stagecraft {

class Launcher;

/// Completion completes the future of a call, whose type only its maker knows.
class Completion {
 public:
  Completion() = default;
  Completion(const Completion&) = delete;
  Completion(Completion&&) = delete;
  Completion& operator=(const Completion&) = delete;
  Completion& operator=(Completion&&) = delete;
  virtual ~Completion() = default;
  virtual void value(const Payload& value) = 0;
  virtual void error(const Error& error) = 0;
};

/// GivenFuture is a future that a call gets as an argument: its origin, and how to read it if its
/// value belongs to no rank of this cluster. `read` calls its argument once, as a callback does.
struct GivenFuture {
  std::shared_ptr<FutureOrigin> origin;
  std::function<void(std::function<void(Delivered)>)> read;
};

using GivenArgument = std::variant<Payload, GivenFuture>;

class RemoteActors {
 public:
  RemoteActors(std::shared_ptr<Launcher> launcher,
               int ranks,
               std::shared_ptr<const Clock> clock = Clock::current());
  ~RemoteActors();
  RemoteActors(const RemoteActors&) = delete;
  RemoteActors& operator=(const RemoteActors&) = delete;

  /// Makes an actor and waits for its constructor.
  /// Errors: UsageArgument for a rank that is not in the cluster, options that make no sense, or a
  ///         type that the rank's program does not know; those of the constructor; those of the
  ///         launcher; ClusterTimeout after the limit.
  [[nodiscard]] ActorId make(const On& on, ActorType type, std::vector<GivenArgument> arguments);

  /// Begins a call and returns the origin of its value. Waits while too many are under way.
  /// `comes_unasked`: the value is so small that it comes with the outcome.
  /// Errors: WorkerLost if the actor's rank is lost; ClusterTimeout after the limit.
  [[nodiscard]] std::shared_ptr<FutureOrigin> call(ActorId actor,
                                                   std::size_t method,
                                                   std::vector<GivenArgument> arguments,
                                                   std::unique_ptr<Completion> completion,
                                                   bool comes_unasked);

  /// Ends the actor after the calls that it has.
  void end(ActorId actor);

  /// Starts the rank's side, so that nothing has to wait for it later. Errors: UsageArgument for a
  /// rank that is not in the cluster; those of the launcher.
  void begin(Rank rank);

  /// Expects the values that a training step will leave on a rank, and returns their origins.
  /// Never throws: if the rank's side cannot have them, the completions fail. `limit`: for each
  /// wait, as that of a call.
  [[nodiscard]] std::vector<std::shared_ptr<FutureOrigin>> expect(
      const StepValues::Place& step,
      const std::vector<StepValueName>& values,
      std::vector<std::unique_ptr<Completion>> completions,
      std::chrono::milliseconds limit);

  /// Fails those of the expected values that the step has not left, because it failed.
  void fail_expected(const std::vector<std::shared_ptr<FutureOrigin>>& values, const Error& why);

  struct State;

 private:
  const std::shared_ptr<State> state_;
};

}  // namespace stagecraft
