/// PeerMemory is the memory that this process shares with one peer, if that is a process of this
/// host: large tensors go to the peer through it.
///
///   New -> Offered -> Shared
///     `-------`----> None      the peer is on another host, or refused, or its door stays busy
///
/// The sender to that peer owns it. Any thread may use it; the mutex guards the state and is not
/// held while a tensor is copied.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "stagecraft/futures/transport/shared_memory/arena_offer.h"
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

namespace stagecraft {

class PeerMemory {
 public:
  /// A smaller tensor is sent sooner through a socket.
  static constexpr std::int64_t kSmallest = std::int64_t{16} << 10U;

  /// `key`: the public key of the peer's port. `bytes`: the most that its slots may have; 0: there
  /// are none.
  PeerMemory(std::string key, std::int64_t bytes)
      : key_(std::move(key)), bytes_(bytes), state_(bytes > 0 ? State::New : State::None) {}

  /// Copies the tensor into a slot. Returns nothing if it has to go through the socket: it is
  /// small, the peer has not taken the memory (yet), or no slot is left.
  [[nodiscard]] std::optional<SlotArena::InSlot> put(const at::Tensor& values);

  /// Works like SlotArena::mark_sent.
  void mark_sent(const SlotRef& slot) const { arena_->mark_sent(slot); }
  /// Works like SlotArena::trim.
  void trim(SlotArena::Time now);

 private:
  enum class State { New, Offered, Shared, None };

  /// A door is busy for moments only.
  static constexpr std::chrono::milliseconds kTryAgain{10};
  static constexpr std::chrono::seconds kLongestTry{30};

  /// Returns the arena if the peer has taken it. Takes the next step towards that.
  [[nodiscard]] std::shared_ptr<SlotArena> shared();
  void offer();
  void hear_answer();

  const std::string key_;
  const std::int64_t bytes_;
  std::mutex mutex_;
  State state_;
  std::shared_ptr<SlotArena> arena_;  ///< from Offered on
  std::optional<ArenaOffer> offer_;   ///< from Offered on
  std::optional<SlotArena::Time> first_try_, next_try_;
};

}  // namespace stagecraft
