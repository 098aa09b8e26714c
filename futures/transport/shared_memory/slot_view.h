/// SlotView is the receiver's side of shared memory: it turns the slots that messages name into
/// tensors. A slot is free again when the last of its tensor's views is gone, on any thread. A
/// message may also name a range of memory in which the sender lends tensors (LentMemory).
///
/// The thread of a data port owns it; tensors keep it, and may outlive the port and the sender.
/// VI-1: a slot is used only if the message, the states and the slots known before agree. The
///       sender may still write to it (docs/security.md).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/process/home_process.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

class SlotView : public std::enable_shared_from_this<SlotView> {
 public:
  /// `lent`: the memory in which the sender lends tensors; nothing if it lends none.
  explicit SlotView(MemoryFile file, std::optional<MemoryFile> lent = std::nullopt);

  /// Returns the tensor in the slot, or in the range of lent memory.
  /// Requires: sizes and dtype make `bytes`, without overflow.
  /// Errors: TransportRefused for a slot that breaks VI-1.
  [[nodiscard]] at::Tensor take(const SlotRef& slot,
                                const std::vector<std::int64_t>& sizes,
                                at::ScalarType dtype,
                                std::int64_t bytes);

  [[nodiscard]] const MemoryFile& file() const { return file_; }

 private:
  [[nodiscard]] at::Tensor lent_tensor(const SlotRef& range,
                                       const std::vector<std::int64_t>& sizes,
                                       at::ScalarType dtype,
                                       std::int64_t bytes);
  void check(const SlotRef& slot, std::int64_t bytes) const;
  void remember(const SlotRef& slot);
  void give_back(std::uint32_t number);

  const HomeProcess home_;
  MemoryFile file_;
  std::optional<MemoryFile> lent_;
  std::vector<SlotRef> known_;  ///< by number; those with a capacity
  std::array<std::atomic<bool>, MemoryFile::kMostSlots> used_{};
};

}  // namespace stagecraft
