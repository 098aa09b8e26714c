/// StepResult is the result of a step. The driver makes it when every rank has answered; callers
/// read it through a StepFuture.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/actors/executor/device/timeline.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/compiler/native/count.h"

namespace stagecraft {

struct StepResult {
  std::int64_t step = 0;       ///< updates made, with this one; for an evaluation, those before it
  std::vector<double> losses;  ///< per microbatch
  double mean_loss = 0.0;      ///< by the weights of the microbatches (PT-2)
  Counts counts;               ///< of all microbatches (count.h)
  double gradient_norm = 0.0;  ///< of the averaged gradient, before clipping
  /// With TrainerOptions::loss_scaling: the factor of this step, and whether it changed no weight,
  /// because its gradients were not finite. The gradient's norm is not finite then.
  double loss_scale = 1.0;
  bool skipped = false;
  double learning_rate = 0.0;  ///< of groups without one of their own; 0 for an evaluation
  double seconds = 0.0;
  std::vector<RankTimes> ranks;
  /// By rank, then by position in its plan. Empty for a rank whose timeline had not come by the
  /// step's deadline, and for all ranks unless TrainerOptions::record_timeline is set.
  std::vector<std::vector<InstructionTime>> timelines;
  /// The share of ranks x seconds in which a rank computed neither forward, backward nor update.
  double bubble = 0.0;
};

}  // namespace stagecraft
