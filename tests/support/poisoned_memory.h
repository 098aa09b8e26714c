/// PoisonedMemory fills LibTorch's memory of the CPU with NaN, when it is handed out and when it is
/// freed, so that a value that nobody wrote and a read after the end change what a run computes.
///
///     Trainer trainer(...);          // first: a rank that is made later takes its own pool (SY-1)
///     const PoisonedMemory poison;
///     trainer.step(...);             // as without poison, bit for bit
///
/// Each byte is 0xff: NaN in every type of float, and -1 in one of integers. A freed block waits
/// until kHeld bytes of later ones are freed too. So nobody else gets it, and a pointer that is
/// read too late sees the poison. A block that is written in that time counts as written_late().
///
/// One at a time. The allocator is the process's, so all threads use it; a mutex guards its blocks.
/// Blocks may be freed after the end.
#pragma once

#include <cstddef>
#include <cstdint>

#include <c10/core/Allocator.h>

namespace stagecraft::testing {

class PoisonedMemory {
 public:
  static constexpr std::size_t kHeld = std::size_t{64} << 20;

  PoisonedMemory();
  ~PoisonedMemory();
  PoisonedMemory(const PoisonedMemory&) = delete;
  PoisonedMemory& operator=(const PoisonedMemory&) = delete;

  /// Returns whether it is still the allocator.
  [[nodiscard]] bool is_in_use() const;
  /// Returns how many blocks were handed out, and how many of them were freed, since it began.
  [[nodiscard]] std::int64_t handed_out() const;
  [[nodiscard]] std::int64_t freed() const;
  /// Returns how many freed blocks were written since it began. Looks at those that wait.
  [[nodiscard]] std::int64_t written_late() const;

 private:
  c10::Allocator* before_;
};

}  // namespace stagecraft::testing
