/// PeerMemory is the memory that this process shares with one peer, if that is a process of this
/// host: large tensors go to the peer in slots, or stay in lent memory; frames go through a ring.
///
///   New -> Offered -> Shared -> Open
///     `-------`----------`-> None   the peer is on another host, refused, has let go of the
///                                   memory, or its door stays busy
///
/// The memory is Open once a frame that names it has left through the socket, because only that
/// tells the peer whose it is. Of Shared memory, slots alone are used, for small tensors too.
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
#include "stagecraft/futures/transport/shared_memory/frame_ring.h"
#include "stagecraft/futures/transport/shared_memory/lent_memory.h"
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"

namespace stagecraft {

class PeerMemory {
 public:
  /// A smaller tensor goes into the ring, after its header.
  static constexpr std::int64_t kSmallest = std::int64_t{16} << 10U;

  /// `key`: the public key of the peer's port. `bytes`: the most that its slots may have; 0: there
  /// are none. `lent` outlives this object.
  PeerMemory(std::string key, std::int64_t bytes, const LentMemory& lent)
      : key_(std::move(key)),
        bytes_(bytes),
        lent_(lent),
        state_(bytes > 0 ? State::New : State::None) {}

  /// Copies the tensor into a slot. Returns nothing if it goes without one: it is small, the peer
  /// has not taken the memory (yet), or no slot is left.
  [[nodiscard]] std::optional<SlotArena::InSlot> put(const at::Tensor& values);

  /// Returns the range of lent memory as a frame names it. Returns nothing if the tensor has to go
  /// another way: it is small, or the peer does not share the memory (yet).
  [[nodiscard]] std::optional<SlotRef> lend(SlotRef range);

  /// Works like SlotArena::mark_sent.
  void mark_sent(const SlotRef& slot) const {
    if (slot.number != kLent) {
      arena_->mark_sent(slot);
    }
  }
  /// Records that a frame which names the memory has left by another way. Requires: Shared or Open.
  void open();
  [[nodiscard]] bool is_open() const;

  /// Writes a frame to the ring, and wakes the peer. Returns false if it has to go another way: the
  /// memory is not Open, the frame is large, or the ring is full.
  [[nodiscard]] bool write(const RingMessage& frame);

  /// Works like SlotArena::trim.
  void trim(SlotArena::Time now);

 private:
  enum class State { New, Offered, Shared, Open, None };

  /// A door is busy for moments only.
  static constexpr std::chrono::milliseconds kTryAgain{10};
  static constexpr std::chrono::seconds kLongestTry{30};

  // The functions below require that the caller holds the mutex.
  [[nodiscard]] bool shares();
  void advance();
  void offer();
  void hear_answer();

  const std::string key_;
  const std::int64_t bytes_;
  const LentMemory& lent_;
  mutable std::mutex mutex_;
  State state_;
  std::shared_ptr<SlotArena> arena_;  ///< from Offered on
  std::optional<ArenaOffer> offer_;   ///< from Offered on
  std::optional<RingWriter> ring_;    ///< when Open
  std::optional<SlotArena::Time> first_try_, next_try_;
};

}  // namespace stagecraft
