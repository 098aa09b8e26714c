/// StepOrder and StepReport: one step as a rank is told to run it, and what came of it there.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/executor/rank_times.h"
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
