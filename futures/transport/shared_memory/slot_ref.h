/// SlotRef names a slot of an arena in a message: where a tensor lies that two processes share.
#pragma once

#include <cstdint>
#include <limits>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Identifies an arena. It is drawn at random, so that no other process can name it.
using ArenaId = StrongId<struct ArenaName, std::uint64_t>;

/// In place of a slot's number: a range of the memory in which the sender lends tensors
/// (LentMemory).
inline constexpr std::uint32_t kLent = std::numeric_limits<std::uint32_t>::max();

inline constexpr std::int64_t kSlotAlignment = 4096;  ///< slots begin at multiples of it

struct SlotRef {
  ArenaId arena;
  std::uint32_t number = 0;   ///< of the slot in its arena, or kLent
  std::int64_t offset = 0;    ///< bytes from the beginning of the memory
  std::int64_t capacity = 0;  ///< bytes

  friend bool operator==(const SlotRef&, const SlotRef&) = default;
};

/// Returns the most that the slot of a tensor of so many bytes may have: no sender wastes more.
[[nodiscard]] constexpr std::int64_t largest_capacity(std::int64_t bytes) {
  return 2 * ((bytes + kSlotAlignment - 1) / kSlotAlignment * kSlotAlignment);
}

}  // namespace stagecraft
