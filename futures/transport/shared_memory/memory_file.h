/// MemoryFile is memory that one process shares with another: a file without a name, which exists
/// as long as a process holds it.
///
///   kMostSlots states | ring | slot | slot | ...
///
/// A SlotArena makes it and a SlotView opens it. Both processes read and write the states, and
/// messages go through the ring (frame_ring.h). Each maps the whole file; memory for slots is taken
/// when they are used.
/// MY-1: a file has a fixed size and cannot shrink (it is sealed), and its pages are those of usual
///       memory, so an access to a slot that has memory does not fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

/// SlotState says which process may use a slot.
enum class SlotState : std::uint32_t {
  Free,    ///< the sender may fill it
  Filled,  ///< the sender has it, and has not sent it yet
  Sent,    ///< it is the receiver's
};

class MemoryFile {
 public:
  using State = std::atomic<SlotState>;
  static_assert(State::is_always_lock_free, "another process uses it too");

  static constexpr std::uint32_t kMostSlots = 4096;
  static constexpr std::int64_t kPage = kSlotAlignment;
  static constexpr std::int64_t kRingOffset = kMostSlots * sizeof(State);
  static constexpr std::int64_t kRingBytes = 32 * kPage;
  static constexpr std::int64_t kFirstSlot = kRingOffset + kRingBytes;
  static constexpr std::int64_t kLargest = std::int64_t{1} << 40U;
  static constexpr std::int64_t kSeen = std::int64_t{64} << 20U;

  /// Returns the most memory that a process shares with each other one, in each direction: half of
  /// this host's memory or 16 GiB, whichever is less. 0 with a limit of addresses (ulimit -v),
  /// which the mappings would use up.
  [[nodiscard]] static std::int64_t usual_limit();

  /// Makes a file whose slots have at most `bytes` in all. Requires: at most kLargest.
  /// Errors: TransportRefused, with the size and the system's reason.
  [[nodiscard]] static MemoryFile make(std::int64_t bytes);

  /// Opens the file of another process. Errors: TransportRefused if it breaks MY-1, or cannot be
  /// mapped.
  explicit MemoryFile(Descriptor file);

  MemoryFile(const MemoryFile&) = delete;
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(const MemoryFile&) = delete;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile();

  [[nodiscard]] const Descriptor& descriptor() const { return file_; }
  /// Closes the file; the memory stays. From now on memory is neither taken nor given back here.
  void close_file() { file_ = Descriptor(); }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(mapped_.size()); }
  /// Requires: `slot` < kMostSlots.
  [[nodiscard]] State& state(std::uint32_t slot) const;
  [[nodiscard]] std::span<std::byte> ring() const {
    return mapped_.subspan(kRingOffset, kRingBytes);
  }
  /// Returns the memory from this byte on. Requires: within the size.
  [[nodiscard]] void* at(std::int64_t offset) const { return mapped_.data() + offset; }

  /// Takes memory for these bytes and makes this process see it. Returns false with `errno` if
  /// there is none.
  [[nodiscard]] bool take_memory(std::int64_t offset, std::int64_t bytes) const;
  /// Makes this process see the first kSeen bytes of memory that exists, at once instead of page by
  /// page.
  void see_memory(std::int64_t offset, std::int64_t bytes) const;
  /// Gives memory back to the system; the bytes are 0 afterwards.
  void give_memory_back(std::int64_t offset, std::int64_t bytes) const;

 private:
  Descriptor file_;
  std::span<std::byte> mapped_;
};

}  // namespace stagecraft
