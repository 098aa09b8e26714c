/// TrainingCost: what a training step costs and where it goes, beside its matrix products alone.
///
/// The same trainer makes steps with nobody watching, steps that are timed inside, and steps behind
/// which its ranks compute the step's matrix products and nothing else, in turns. The ranks are
/// threads of this process.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/measured_model.h"
#include "stagecraft/bench/step_bill.h"
#include "stagecraft/bench/step_probe.h"

namespace stagecraft::bench {

struct CostRequest {
  std::string schedule;  ///< of the registry; the model's stages say how many ranks
  int threads = 1;       ///< of LibTorch, on each rank
  int rounds = 3;
};

/// Units: seconds.
struct TrainingCost {
  std::string model, schedule;
  int ranks = 0, threads = 0;
  double step = 0.0;            ///< the median, with nobody watching
  double watched_step = 0.0;    ///< likewise, of the steps that the bill is of
  double products_alone = 0.0;  ///< of the slowest rank, all at work
  double page_faults = 0.0;     ///< a step, of the process, with nobody watching
  double kernel = 0.0;          ///< likewise, of all processors
  StepBill bill;
  std::vector<CallTime> calls;  ///< of all ranks, a step; the longest first
};

/// Trains with AdamW.
[[nodiscard]] TrainingCost training_cost(const MeasuredModel& model, const CostRequest& request);

[[nodiscard]] std::string text_of(const TrainingCost& cost);
[[nodiscard]] nlohmann::json json_of(const TrainingCost& cost);

}  // namespace stagecraft::bench
