/// InstructionTime: when one instruction ran, and what its rank held at that time. See
/// TimelineRecorder.
#pragma once

#include <cstdint>

namespace stagecraft {

/// Units: nanoseconds of the rank's steady clock, in a StepResult of the driver's clock; bytes.
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
