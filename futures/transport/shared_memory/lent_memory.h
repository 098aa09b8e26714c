/// LentMemory is the memory of a data port that peers on its host read in place (Transport::lend).
/// A port has one. Every peer gets it together with its arena (ArenaOffer).
///
/// Only the process that made a range changes or frees it, after all readers have said that they
/// are done. Any thread may use it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <ATen/core/Tensor.h>

#include "stagecraft/futures/transport/shared_memory/descriptor.h"
#include "stagecraft/futures/transport/shared_memory/slot_arena.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

class LentMemory {
 public:
  /// `bytes`: the most memory to use; 0 turns lending off. If memory is missing, a warning is
  /// logged, and zeros() uses ordinary memory.
  explicit LentMemory(std::int64_t bytes);

  /// Returns a flat tensor of zeros, in this memory unless none is left.
  [[nodiscard]] at::Tensor zeros(std::int64_t elements, at::ScalarType dtype) const;

  /// Returns the tensor's place in this memory, without an arena's id. Returns nothing if the
  /// tensor lies elsewhere. Requires: contiguous.
  [[nodiscard]] std::optional<SlotRef> range_of(const at::Tensor& tensor) const;

  /// Works like SlotArena::trim.
  void trim(SlotArena::Time now) const;

  /// Returns the file to offer; null if there is none.
  [[nodiscard]] const Descriptor* file() const {
    return ranges_ == nullptr ? nullptr : &ranges_->file().descriptor();
  }

 private:
  std::shared_ptr<SlotArena> ranges_;
};

}  // namespace stagecraft
