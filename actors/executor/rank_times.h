/// RankTimes: where one rank's step went. Made by the executor, read in a StepResult.
#pragma once

#include <cstdint>

namespace stagecraft {

/// Seconds of one rank in one step; the rest of the wall time is waiting for peers and between
/// instructions.
struct RankTimes {
  double forward = 0.0, backward = 0.0, update = 0.0, waiting = 0.0, wall = 0.0;
  std::int64_t peak_bytes = 0;      ///< of activations and what autograd keeps
  std::int64_t peak_in_flight = 0;  ///< most (stage, microbatch) kept for a backward at once
};

}  // namespace stagecraft
