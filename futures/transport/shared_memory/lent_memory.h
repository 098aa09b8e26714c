/// LentMemory is memory of a data port in which peers of its host read tensors where they lie
/// (Transport::lend). All of them share the same, each with its offer (ArenaOffer).
///
/// Its ranges have no owner but the process that made them: it changes and frees them only when
/// the readers have said that they are done. Any thread may use it.
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
  /// `bytes`: the most that it may have; 0: there is none. A lack of it is logged.
  explicit LentMemory(std::int64_t bytes);

  /// Returns a flat tensor of zeros, in this memory unless none is left.
  [[nodiscard]] at::Tensor zeros(std::int64_t elements, at::ScalarType dtype) const;

  /// Returns where the tensor lies in this memory; nothing if it lies elsewhere. The arena is
  /// left out. Requires: contiguous.
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
