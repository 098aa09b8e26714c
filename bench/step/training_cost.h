/// TrainingCost measures the cost of a training step, its parts, and the time of its matrix
/// products alone.
///
/// The same trainer makes, in turns, steps that are not watched, steps that are timed inside, and
/// steps after which its ranks compute only the step's matrix products. The ranks are threads of
/// this process.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "stagecraft/bench/step/measured_model.h"
#include "stagecraft/bench/step/step_bill.h"
#include "stagecraft/bench/step/step_probe.h"

namespace stagecraft::bench {

struct CostRequest {
  std::string schedule;  ///< a registered name; the model's stages determine the number of ranks
  int threads = 1;       ///< of LibTorch, on each rank
  int rounds = 3;
};

/// TrainingCost holds the result. Units: seconds.
struct TrainingCost {
  std::string model, schedule;
  int ranks = 0, threads = 0;
  double step = 0.0;            ///< the median of steps that are not watched
  double watched_step = 0.0;    ///< the median of the steps that the bill covers
  double products_alone = 0.0;  ///< of the slowest rank, with all ranks at work
  double page_faults = 0.0;     ///< per step, of the process, not watched
  double kernel = 0.0;          ///< seconds in the kernel per step, of all processors, not watched
  StepBill bill;
  std::vector<CallTime> calls;  ///< of all ranks, per step; the longest first
};

/// Trains with AdamW.
[[nodiscard]] TrainingCost training_cost(const MeasuredModel& model, const CostRequest& request);

[[nodiscard]] std::string text_of(const TrainingCost& cost);
[[nodiscard]] nlohmann::json json_of(const TrainingCost& cost);

}  // namespace stagecraft::bench
