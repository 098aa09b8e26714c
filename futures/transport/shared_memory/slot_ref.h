/// SlotRef names a slot of an arena in a message: where a tensor lies that two processes share.
#pragma once

#include <cstdint>

#include "stagecraft/base/ids.h"

namespace stagecraft {

/// Identifies an arena. It is drawn at random, so that no other process can name it.
using ArenaId = StrongId<struct ArenaName, std::uint64_t>;

struct SlotRef {
  ArenaId arena;
  std::uint32_t number = 0;   ///< of the slot in its arena
  std::int64_t offset = 0;    ///< bytes from the beginning of the memory
  std::int64_t capacity = 0;  ///< bytes

  friend bool operator==(const SlotRef&, const SlotRef&) = default;
};

}  // namespace stagecraft
