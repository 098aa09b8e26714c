/// Store: the values one worker holds while it runs a plan, by slot number.
///
/// The executor makes one per plan and alone uses it: the store is confined to the plan thread.
/// ST-1: a slot is empty or holds one tensor; `put` needs it empty, everything else needs it full.
///      So a plan that frees twice, reads too late or forgets to free is found at the instruction
///      that is wrong.
/// ST-2: bytes() is the sum over full slots of the tensor's nbytes plus what was accounted for;
///      peak() is the highest it has been. Two slots with views of one storage count both.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/base/ids.h"

namespace stagecraft {

class Store {
 public:
  /// Slots 0 to slots - 1, all empty.
  explicit Store(std::int32_t slots);

  /// Errors of all four: PlanInvalid, naming the slot and what is the matter with it.
  void put(SlotId slot, at::Tensor tensor);
  /// The reference is good until the slot is taken or freed.
  [[nodiscard]] const at::Tensor& get(SlotId slot) const;
  /// Returns the tensor and leaves the slot empty: the last reader takes, so that nothing keeps the
  /// memory.
  [[nodiscard]] at::Tensor take(SlotId slot);
  void free(SlotId slot);

  /// False for a slot the store does not have.
  [[nodiscard]] bool holds(SlotId slot) const;

  /// Adds memory that no slot shows (what autograd saved); a negative number takes it off again.
  void account(std::int64_t bytes);

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }

  /// Empties every slot and the account, as after an aborted step; the peak stays.
  void clear();

 private:
  enum class Last : std::uint8_t { NeverFilled, Filled, Taken, Freed, Cleared };
  struct Slot {
    at::Tensor tensor;
    Last last = Last::NeverFilled;
  };

  [[nodiscard]] const Slot& full(SlotId slot, std::string_view wanted) const;
  [[nodiscard]] at::Tensor empty(SlotId slot, Last last, std::string_view wanted);

  std::vector<Slot> slots_;
  std::int64_t bytes_ = 0;
  std::int64_t peak_ = 0;
};

}  // namespace stagecraft
