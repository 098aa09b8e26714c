/// Slots holds the values of one rank while it runs a plan, by the plan's slot numbers.
///
/// The executor makes one per plan and alone uses it, on its plan thread.
/// ST-1: a slot is empty or holds one value, a tensor or another kind. `put` needs it empty,
///       everything else needs it full. So a plan that frees twice, reads too late or forgets to
///       free fails at the wrong instruction.
/// ST-2: bytes() is the sum over full slots of the tensors' nbytes plus the stated bytes of
///       autograd; peak() is its highest value so far. Gradients of parameters count as nothing:
///       they are as large as the weights and counted with them. Two slots with views of one
///       storage count both.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/saved.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

class Slots {
 public:
  /// Makes slots 0 to count - 1, all empty.
  explicit Slots(std::int32_t count);

  /// Fills an empty slot. Errors of all functions below: PlanInvalid, naming the slot and the
  /// fault.
  void put(SlotId slot, at::Tensor tensor);
  /// Fills an empty slot with saved values. `bytes`: kept by autograd for them.
  void put(SlotId slot, SavedStage saved, std::int64_t bytes);
  void put(SlotId slot, std::vector<at::Tensor> parameter_gradients);
  void free(SlotId slot);
  /// Sets the bytes that autograd keeps for the saved values from now on.
  void now_keeps(SlotId slot, std::int64_t bytes);

  // References are valid until the slot is freed.
  [[nodiscard]] const at::Tensor& tensor(SlotId slot) const;
  [[nodiscard]] SavedStage& saved(SlotId slot);
  [[nodiscard]] const std::vector<at::Tensor>& parameter_gradients(SlotId slot) const;

  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::int64_t peak() const { return peak_; }
  /// Return the (stage, microbatch) pairs kept for a backward, now and at most since begin_step().
  [[nodiscard]] std::int64_t in_flight() const { return in_flight_; }
  [[nodiscard]] std::int64_t peak_in_flight() const { return peak_in_flight_; }

  void begin_step() { peak_in_flight_ = in_flight_; }

  /// Empties every slot, as after an aborted step; the peaks stay.
  void clear();

 private:
  using Content = std::
      variant<std::monostate, at::Tensor, SavedStage, /* of parameters */ std::vector<at::Tensor>>;
  enum class Last : std::uint8_t { NeverFilled, Filled, Freed, Cleared };
  struct Slot {
    Content content;
    std::int64_t bytes = 0;
    Last last = Last::NeverFilled;
  };

  void fill(SlotId slot, Content content, std::int64_t bytes);
  [[nodiscard]] const Slot& full(SlotId slot, std::string_view wanted) const;
  template <class T>
  [[nodiscard]] const T& get(SlotId slot, std::string_view kind) const;

  std::vector<Slot> slots_;
  std::int64_t bytes_ = 0;
  std::int64_t peak_ = 0;
  std::int64_t in_flight_ = 0;
  std::int64_t peak_in_flight_ = 0;
};

}  // namespace stagecraft
