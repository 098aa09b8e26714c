/// StepOrder and StepReport: one step as a rank is told to run it, and what came of it there.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/executor/timeline.h"
#include "stagecraft/base/ids.h"

namespace stagecraft {

/// One step as the driver orders it.
struct StepOrder {
  Step step;  ///< optimizer updates so far; seeds random operators
  Submission submission;
  Epoch epoch;
  double learning_rate = 0.0;
  bool training = true;
};

/// Seconds of one rank in one step; the rest of the wall time is waiting for peers and between
/// instructions.
struct RankTimes {
  double forward = 0.0, backward = 0.0, update = 0.0, waiting = 0.0, wall = 0.0;
  std::int64_t peak_bytes = 0;      ///< of activations and what autograd keeps
  std::int64_t peak_in_flight = 0;  ///< most (stage, microbatch) kept for a backward at once
};

struct MicrobatchLoss {
  Microbatch microbatch;
  double value = 0.0;

  friend bool operator==(const MicrobatchLoss&, const MicrobatchLoss&) = default;
};

struct StepReport {
  Rank rank;
  bool committed = false;  ///< weights have changed
  RankTimes times;
  std::vector<MicrobatchLoss> losses;  ///< ascending; empty where other ranks compute the loss
  double gradient_norm = 0.0;
  std::vector<InstructionTime> timeline;  ///< by position in the rank's plan; empty unless recorded
};

}  // namespace stagecraft
