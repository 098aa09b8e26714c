/// SlotArena is the sender's side of shared memory: it copies tensors into slots, which the
/// receiver uses and gives back (SlotView).
///
/// A sender has one for each peer of its host, and LentMemory has one whose slots are never sent.
/// Any thread may use it; the mutex guards the list of slots and is held for a search only, not
/// while memory is taken or a tensor is copied. Memory is taken when a slot is used, and given back
/// when the slot was free for kIdle (trim()).
/// SX-1: a slot has one user at a time, as its state says (SlotState). Only the sender makes a
///       Free slot Filled; only the receiver makes a Sent slot Free.
/// SX-2: a slot has memory before it is used, so a lack of memory is found here, and not by a
///       signal in the receiver. (The system may end a process of a control group instead.)
/// SX-3: each use of a slot has a number, and a trim counts as a use. A destroyed tensor frees its
///       slot only if the number is still its own: the receiver may have freed the slot before, and
///       the sender may use it again.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/process/home_process.h"
#include "stagecraft/futures/transport/shared_memory/memory_file.h"
#include "stagecraft/futures/transport/shared_memory/slot_ref.h"

namespace stagecraft {

class SlotArena : public std::enable_shared_from_this<SlotArena> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  static constexpr std::chrono::seconds kIdle{10};
  static constexpr std::int64_t kTrimmed = std::int64_t{256} << 20U;

  /// Says which slots tensors get.
  enum class Sizes {
    Similar,  ///< up to twice as large as the tensor: for tensors on their way
    Exact,    ///< whole pages: for tensors that stay
  };

  /// Makes an arena whose slots have memory for at most `bytes`.
  /// Errors: TransportRefused, with the reason.
  [[nodiscard]] static std::shared_ptr<SlotArena> make(std::int64_t bytes,
                                                       Sizes sizes = Sizes::Similar);

  /// InSlot is a copy of a tensor in a slot. If it is dropped before mark_sent(), its slot is free
  /// again.
  struct InSlot {
    at::Tensor tensor;
    SlotRef slot;
  };

  /// Returns a slot with room for such a tensor, whose values are not set. Returns nothing if there
  /// is no slot and no memory for another; the first time, the reason is logged.
  /// Requires: not empty.
  [[nodiscard]] std::optional<InSlot> empty(at::IntArrayRef sizes, at::ScalarType dtype);
  /// Copies `values` into a slot. Returns nothing as empty() does.
  /// Requires: in CPU memory, contiguous, without autograd, not empty.
  [[nodiscard]] std::optional<InSlot> put(const at::Tensor& values);

  /// Gives the slot to the receiver. Called before the message that names it.
  void mark_sent(const SlotRef& slot);

  /// Gives memory of idle slots back to the system, at most about kTrimmed bytes at a time.
  void trim(Time now);

  [[nodiscard]] ArenaId id() const { return id_; }
  [[nodiscard]] const MemoryFile& file() const { return file_; }
  /// Returns the memory that the slots have now.
  [[nodiscard]] std::int64_t bytes() const;
  /// Returns the number of slots so far.
  [[nodiscard]] std::size_t slots() const;

 private:
  struct Slot {
    std::int64_t offset = 0;
    std::int64_t capacity = 0;
    bool has_memory = false;
    std::optional<Time> free_since;  ///< as far as trim() has seen
    std::uint64_t use = 0;           ///< its number (SX-3)
  };

  SlotArena(MemoryFile file, std::int64_t limit, Sizes sizes);

  [[nodiscard]] bool take_memory(std::uint32_t number);
  void give_back(std::uint32_t number, std::uint64_t use);

  // The functions below require that the caller holds the mutex.
  [[nodiscard]] std::optional<std::uint32_t> free_slot(std::int64_t bytes) const;
  [[nodiscard]] std::optional<std::uint32_t> new_slot(std::int64_t bytes);
  void log_lack(std::int64_t bytes, std::string_view why);

  const HomeProcess home_;
  const ArenaId id_;
  const MemoryFile file_;
  const std::int64_t limit_;
  const Sizes sizes_;
  mutable std::mutex mutex_;
  std::vector<Slot> slots_;
  std::int64_t end_ = MemoryFile::kFirstSlot;  ///< of the last slot
  std::int64_t bytes_ = 0;
  bool has_logged_ = false;
};

}  // namespace stagecraft
