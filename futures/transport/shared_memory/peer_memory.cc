#include "stagecraft/futures/transport/shared_memory/peer_memory.h"

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

std::optional<SlotArena::Lent> PeerMemory::put(const at::Tensor& values) {
  const std::shared_ptr<SlotArena> arena = shared();
  if (arena == nullptr || static_cast<std::int64_t>(values.nbytes()) < kSmallest) {
    return std::nullopt;
  }
  return arena->put(values, std::chrono::steady_clock::now());
}

void PeerMemory::trim(SlotArena::Time now) {
  const std::scoped_lock lock(mutex_);
  if (state_ == State::Shared) {
    arena_->trim(now);
  }
}

std::shared_ptr<SlotArena> PeerMemory::shared() {
  const std::scoped_lock lock(mutex_);
  if (state_ == State::New) {
    offer();
  }
  if (state_ == State::Offered) {
    hear_answer();
  }
  return state_ == State::Shared ? arena_ : nullptr;
}

void PeerMemory::offer() {
  state_ = State::None;
  try {
    std::shared_ptr<SlotArena> arena = SlotArena::make(bytes_);
    offer_ = ArenaOffer::make(key_, arena->id(), arena->descriptor());
    if (offer_) {
      arena_ = std::move(arena);
      state_ = State::Offered;
    }
  } catch (const Error& error) {
    log(Level::Warning, "tensors go through a socket", {{"key", key_}, {"why", error.what()}});
  }
}

void PeerMemory::hear_answer() {
  const ArenaOffer::Answer answer = offer_->answer();
  if (answer == ArenaOffer::Answer::None) {
    return;
  }
  offer_.reset();
  if (answer == ArenaOffer::Answer::Taken) {
    state_ = State::Shared;
    log(Level::Info, "tensors go through shared memory", {{"key", key_}});
  } else {
    state_ = State::None;
    arena_.reset();
    log(Level::Warning,
        "tensors go through a socket",
        {{"key", key_}, {"why", "the peer refused the shared memory"}});
  }
}

}  // namespace stagecraft
