/// RankTimes says how one rank spent a step, and how much memory it took. The executor makes it;
/// callers read it in a StepResult.
#pragma once

#include <cstdint>

namespace stagecraft {

/// RankMemory is the memory that a rank's pool has from the system (MP-1), for its steps alone.
/// Units: bytes.
struct RankMemory {
  std::int64_t live = 0;         ///< in use, at the end of the step
  std::int64_t cached = 0;       ///< beyond that, kept for the next step
  std::int64_t peak = 0;         ///< most in use at once in the step
  std::int64_t page_faults = 0;  ///< of its thread in the step: 0 once the pool has all memory
};

/// RankTimes holds the seconds of one rank in one step. The rest of the wall time is waiting for
/// peers and between instructions.
struct RankTimes {
  double forward = 0.0, backward = 0.0, update = 0.0, waiting = 0.0, wall = 0.0;
  std::int64_t peak_bytes = 0;      ///< of activations and what autograd keeps
  std::int64_t peak_in_flight = 0;  ///< most (stage, microbatch) pairs kept for a backward at once
  RankMemory memory;
};

}  // namespace stagecraft
