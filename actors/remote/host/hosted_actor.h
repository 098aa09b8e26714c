/// HostedActor is one object of a user's class on a rank, with the queue of its calls and the
/// threads that run them.
///
/// HA-1: calls begin in the order in which they were given. With one thread each ends before the
///       next one begins. The constructor ends before all others begin.
/// HA-2: the threads own what they use, so nobody waits for a method that still runs. After the end
///       of the actor they finish the calls that it has; after abandon() only the running ones.
///       An operator of LibTorch runs on the actor's thread alone (thread_count.h).
/// HA-3: a thread is at work (process_end.h) while it runs the user's code, and not while it waits
///       for a call or an argument.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "stagecraft/actors/remote/host/actor_type.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

inline constexpr std::size_t kConstruct = static_cast<std::size_t>(-1);

/// HostedCall is one call of a method. Its arguments are futures, as some come from other ranks.
struct HostedCall {
  std::size_t method = 0;  ///< kConstruct: the constructor, as the first call
  std::vector<Future<Payload>> arguments;
  std::shared_ptr<Promise<Payload>> outcome;
};

class HostedActor {
 public:
  /// `type`: of `types`. Errors: DeviceOutOfMemory if no thread can be started.
  HostedActor(std::shared_ptr<const ActorTypes> types, const ActorType& type, int concurrency);
  ~HostedActor();
  HostedActor(const HostedActor&) = delete;
  HostedActor& operator=(const HostedActor&) = delete;

  void post(HostedCall call);
  /// Fails the calls that have not begun.
  void abandon(const Error& why);

  [[nodiscard]] const ActorType& type() const;

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace stagecraft
