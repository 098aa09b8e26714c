/// MemoryFile is memory that one process shares with another: a file without a name, which exists
/// as long as a process holds it.
///
///   kMostSlots states | slot | slot | ...
///
/// A SlotArena makes it and a SlotView opens it. Both processes read and write the states.
/// MY-1: a file has a fixed size and cannot shrink (it is sealed), so an access within its size
///       does not fail.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"

namespace stagecraft {

/// SlotState says which process may use a slot.
enum class SlotState : std::uint32_t {
  Free,    ///< the sender may fill it
  Filled,  ///< the sender has filled it and not sent it yet
  Sent,    ///< it is the receiver's
};

/// Mapping is a part of a MemoryFile in the memory of this process.
class Mapping {
 public:
  Mapping() = default;
  /// Errors: TransportRefused.
  Mapping(const Descriptor& file, std::int64_t offset, std::int64_t bytes);
  Mapping(const Mapping&) = delete;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(const Mapping&) = delete;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  [[nodiscard]] void* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return static_cast<std::int64_t>(bytes_); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

class MemoryFile {
 public:
  using State = std::atomic<SlotState>;
  static_assert(State::is_always_lock_free, "another process uses it too");

  static constexpr std::uint32_t kMostSlots = 4096;
  static constexpr std::int64_t kPage = 4096;  ///< slots begin at multiples
  static constexpr std::int64_t kFirstSlot = kMostSlots * sizeof(State);

  /// Returns the most that ranks share with each other: half of this host's memory. They take of it
  /// what is on its way at once.
  [[nodiscard]] static std::int64_t usual_limit();

  /// Makes a file whose slots have at most `bytes` in all. Its memory is taken slot by slot.
  /// Errors: TransportRefused, with the size and the system's reason.
  [[nodiscard]] static MemoryFile make(std::int64_t bytes);

  /// Opens the file of another process. Errors: TransportRefused if it breaks MY-1, or cannot be
  /// mapped.
  explicit MemoryFile(Descriptor file);

  [[nodiscard]] const Descriptor& descriptor() const { return file_; }
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Requires: `slot` < kMostSlots.
  [[nodiscard]] State& state(std::uint32_t slot) const { return states_[slot]; }

 private:
  Descriptor file_;
  std::int64_t size_ = 0;
  Mapping mapped_states_;
  std::span<State> states_;
};

}  // namespace stagecraft
