#include "stagecraft/futures/transport/shared_memory/peer_memory.h"

#include <utility>

#include "stagecraft/base/error.h"
#include "stagecraft/base/log.h"

namespace stagecraft {

std::optional<SlotArena::InSlot> PeerMemory::put(const at::Tensor& values) {
  std::shared_ptr<SlotArena> arena;
  {
    const std::scoped_lock lock(mutex_);
    const bool shared = shares();
    const std::int64_t smallest = state_ == State::Open ? kSmallest : 1;
    if (shared && static_cast<std::int64_t>(values.nbytes()) >= smallest) {
      arena = arena_;
    }
  }
  return arena == nullptr ? std::nullopt : arena->put(values);
}

std::optional<SlotRef> PeerMemory::lend(SlotRef range) {
  const std::scoped_lock lock(mutex_);
  if (!shares() || range.capacity < kSmallest) {
    return std::nullopt;
  }
  range.arena = arena_->id();
  return range;
}

/// Returns whether the peer has taken the memory.
bool PeerMemory::shares() {
  advance();
  return state_ == State::Shared || state_ == State::Open;
}

void PeerMemory::open() {
  const std::scoped_lock lock(mutex_);
  if (state_ == State::Shared) {
    state_ = State::Open;
    ring_.emplace(arena_->file().ring());
  }
}

bool PeerMemory::is_open() const {
  const std::scoped_lock lock(mutex_);
  return state_ == State::Open;
}

bool PeerMemory::write(const RingMessage& frame) {
  const std::scoped_lock lock(mutex_);
  if (state_ != State::Open || std::cmp_greater_equal(frame.bytes.size(), kSmallest) ||
      !ring_->write(frame)) {
    return false;
  }
  if (ring_->finds_sleeper() && !offer_->ring()) {
    state_ = State::None;  // nobody reads the frame; the next ones show the gap
  }
  return true;
}

void PeerMemory::trim(SlotArena::Time now) {
  std::shared_ptr<SlotArena> arena;
  {
    const std::scoped_lock lock(mutex_);
    arena = arena_;
  }
  if (arena != nullptr) {
    arena->trim(now);
  }
}

/// Takes the next step towards memory that the peer has taken.
void PeerMemory::advance() {
  if (state_ == State::New) {
    offer();
  }
  if (state_ == State::Offered) {
    hear_answer();
  }
}

void PeerMemory::offer() {
  const SlotArena::Time now = std::chrono::steady_clock::now();
  if (next_try_ && now < *next_try_) {
    return;
  }
  ArenaOffer offer(key_);
  if (!offer.is_connected()) {
    first_try_ = first_try_.value_or(now);
    next_try_ = now + kTryAgain;
    if (!offer.is_possible()) {
      state_ = State::None;
    } else if (now > *first_try_ + kLongestTry) {
      state_ = State::None;
      log(Level::Warning,
          "tensors go through a socket",
          {{"key", key_}, {"why", "the peer takes no offer of shared memory"}});
    }
    return;
  }
  state_ = State::None;
  try {
    std::shared_ptr<SlotArena> arena = SlotArena::make(bytes_);
    if (offer.send(arena->id(), arena->file().descriptor(), lent_.file())) {
      arena_ = std::move(arena);
      offer_ = std::move(offer);
      state_ = State::Offered;
    }
  } catch (const Error& error) {
    log(Level::Warning, "tensors go through a socket", {{"key", key_}, {"why", error.what()}});
  }
}

void PeerMemory::hear_answer() {
  const ArenaOffer::Answer answer = offer_->answer();
  if (answer == ArenaOffer::Answer::Taken) {
    state_ = State::Shared;
    log(Level::Info, "tensors go through shared memory", {{"key", key_}});
  } else if (answer == ArenaOffer::Answer::Refused) {
    state_ = State::None;
    arena_.reset();
    offer_.reset();
    log(Level::Warning,
        "tensors go through a socket",
        {{"key", key_}, {"why", "the peer refused the shared memory"}});
  }
}

}  // namespace stagecraft
