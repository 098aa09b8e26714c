/// StepFuture: the handle of one step. Made by Trainer::step, copied and dropped as one likes, on
/// any thread.
///
/// SF-1: it completes exactly once: with a result, an error, or cancelled when the trainer goes
///       first.
/// SF-2: losses stay on their worker until the first get(), and are released there when the last
///       handle goes.
/// SF-3: one that is not valid() (made empty, or moved from) answers all else with a UsageArgument.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/step_ledger.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

struct StepResult {
  std::int64_t step = 0;       ///< updates made, with this one
  std::vector<double> losses;  ///< per microbatch
  double mean_loss = 0.0;
  double gradient_norm = 0.0;  ///< of the averaged gradient, before clipping
  double seconds = 0.0;
  std::vector<RankTimes> ranks;
  /// By rank, then position in its plan; each empty unless TrainerOptions::record_timeline.
  std::vector<std::vector<InstructionTime>> timelines;
  /// The share of ranks x seconds in which a rank computed neither forward, backward nor update.
  double bubble = 0.0;
};

class StepFuture {
 public:
  /// Brings the losses here. Called by get(), once, on the thread that asks first.
  using ReadLosses = std::function<std::vector<double>(const StepOutcome&)>;

  StepFuture() = default;
  StepFuture(Future<StepOutcome> outcome, ReadLosses read);

  [[nodiscard]] bool valid() const { return cell_ != nullptr; }
  /// True once the step is over, one way or another.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] bool wait_until(Deadline deadline) const;

  /// Waits for the step and returns what came of it, as often as it is asked.
  /// Errors: the step's, with rank, stage, microbatch and task where known; Cancelled;
  ///         ClusterClosed when the losses were not read before the trainer was destroyed.
  [[nodiscard]] StepResult get() const;

 private:
  struct Cell;
  [[nodiscard]] Cell& cell() const;

  std::shared_ptr<Cell> cell_;
};

}  // namespace stagecraft
