/// InstructionTime holds the times of one instruction, and the bytes that its rank held at its end.
/// TimelineRecorder records it.
#pragma once

#include <cstdint>

namespace stagecraft {

/// Units: bytes; nanoseconds of the rank's steady clock, or, in a StepResult, of the driver's
/// clock.
struct InstructionTime {
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t arrived = 0;  ///< Recv: when its tensor had arrived; 0 for all others
  std::int64_t bytes = 0;    ///< Send, Recv: of the tensor
  std::int64_t held =
      0;  ///< by the rank at the end of the instruction: slots and what autograd keeps
  std::int64_t in_flight = 0;  ///< (stage, microbatch) pairs kept for a backward at that time
};

}  // namespace stagecraft
