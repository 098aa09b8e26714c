#include "stagecraft/futures/transport/shared_memory/frame_ring.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>

#include <fmt/format.h>

#include "stagecraft/base/error.h"

namespace stagecraft {

/// The beginning of a ring's memory. Each side writes to cache lines of its own.
struct RingState {
  alignas(64) std::atomic<std::uint64_t> written;
  alignas(64) std::atomic<std::uint64_t> read;
  alignas(64) std::atomic<std::uint32_t> asleep;

  static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "another process uses it too");
};

namespace {

/// A message begins with the sizes of its parts.
using Sizes = std::array<std::uint32_t, 2>;

/// Messages begin at multiples of it, so the sizes lie in one piece.
constexpr std::uint64_t kAlignment = sizeof(Sizes);

constexpr std::uint64_t length_of(std::uint64_t header, std::uint64_t bytes) {
  return (sizeof(Sizes) + header + bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// The system has zeroed the memory, and a ring begins empty and awake.
RingState& state_in(std::span<std::byte> memory) {
  return *reinterpret_cast<RingState*>(memory.data());
}

std::span<std::byte> circle_in(std::span<std::byte> memory) {
  const std::span<std::byte> rest = memory.subspan(sizeof(RingState));
  return rest.first(rest.size() / kAlignment * kAlignment);
}

}  // namespace

RingWriter::RingWriter(std::span<std::byte> memory)
    : state_(state_in(memory)), circle_(circle_in(memory)) {}

bool RingWriter::write(const RingMessage& message) {
  const std::uint64_t length = length_of(message.header.size(), message.bytes.size());
  const std::uint64_t used = written_ - state_.read.load(std::memory_order_acquire);
  if (used > circle_.size() || length > circle_.size() - used) {
    return false;
  }
  const Sizes sizes{static_cast<std::uint32_t>(message.header.size()),
                    static_cast<std::uint32_t>(message.bytes.size())};
  copy_in(written_, {reinterpret_cast<const char*>(sizes.data()), sizeof sizes});
  copy_in(written_ + sizeof sizes, message.header);
  copy_in(written_ + sizeof sizes + message.header.size(), message.bytes);
  written_ += length;
  state_.written.store(written_, std::memory_order_seq_cst);
  return true;
}

bool RingWriter::finds_sleeper() {
  // Keeps RG-3: this load follows the store in write(), and a reader does the two in reverse.
  return state_.asleep.load(std::memory_order_seq_cst) != 0 && state_.asleep.exchange(0) != 0;
}

void RingWriter::copy_in(std::uint64_t at, std::string_view bytes) {
  if (bytes.empty()) {
    return;
  }
  const std::size_t place = at % circle_.size();
  const std::size_t first = std::min(bytes.size(), circle_.size() - place);
  std::memcpy(circle_.data() + place, bytes.data(), first);
  std::memcpy(circle_.data(), bytes.data() + first, bytes.size() - first);
}

RingReader::RingReader(std::span<std::byte> memory)
    : state_(state_in(memory)), circle_(circle_in(memory)) {}

RingReader::~RingReader() {
  state_.asleep.store(1, std::memory_order_seq_cst);
}

std::optional<RingMessage> RingReader::next() {
  seen_ = state_.written.load(std::memory_order_acquire);
  const std::uint64_t there = seen_ - read_;
  if (there == 0) {
    return std::nullopt;
  }
  Sizes sizes{};
  if (there <= circle_.size() && there >= sizeof sizes) {
    copy_out(read_, {reinterpret_cast<char*>(sizes.data()), sizeof sizes});
    length_ = length_of(sizes[0], sizes[1]);
  }
  if (there > circle_.size() || there < sizeof sizes || length_ > there) {  // keeps RG-2
    throw Error(Errc::TransportRefused,
                fmt::format("shared memory: a message of {} and {} bytes cannot be among the {} "
                            "that were written to a ring of {}",
                            sizes[0],
                            sizes[1],
                            there,
                            circle_.size()));
  }
  copy_.resize(std::size_t{sizes[0]} + sizes[1]);
  copy_out(read_ + sizeof sizes, copy_);
  const std::string_view copied = copy_;
  return RingMessage{.header = copied.substr(0, sizes[0]), .bytes = copied.substr(sizes[0])};
}

void RingReader::pop() {
  read_ += length_;
  state_.read.store(read_, std::memory_order_release);
}

bool RingReader::fall_asleep() {
  state_.asleep.store(1, std::memory_order_seq_cst);
  if (state_.written.load(std::memory_order_seq_cst) == seen_) {
    return true;
  }
  wake_up();
  return false;
}

void RingReader::wake_up() {
  state_.asleep.store(0, std::memory_order_relaxed);
}

void RingReader::copy_out(std::uint64_t at, std::span<char> bytes) const {
  if (bytes.empty()) {
    return;
  }
  const std::size_t place = at % circle_.size();
  const std::size_t first = std::min(bytes.size(), circle_.size() - place);
  std::memcpy(bytes.data(), circle_.data() + place, first);
  std::memcpy(bytes.data() + first, circle_.data(), bytes.size() - first);
}

}  // namespace stagecraft
