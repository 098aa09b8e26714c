/// StepFuture: the handle of one step. Made by Trainer::step, copied and dropped as one likes, on
/// any thread.
///
/// SF-1: it completes exactly once: with a result, an error, or cancelled when the trainer goes
///       first. A result stays readable after that.
#pragma once

#include "stagecraft/actors/step_result.h"
#include "stagecraft/base/home_process.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class StepFuture {
 public:
  /// Names no step.
  StepFuture() = default;
  explicit StepFuture(Future<StepResult> result) : result_(std::move(result)) {}

  [[nodiscard]] bool valid() const { return result_.valid(); }

  // Errors of all that follow: UsageArgument for a handle that names no step, and in a child of
  // fork().

  /// True once the step is over, one way or another.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] bool wait_until(Deadline deadline) const;

  /// Waits for the step and returns what came of it, as often as it is asked.
  /// Errors: the step's, with rank, stage, microbatch and task where known; Cancelled.
  [[nodiscard]] StepResult get() const;

 private:
  [[nodiscard]] const Future<StepResult>& result() const;

  Future<StepResult> result_;
  HomeProcess home_;
};

}  // namespace stagecraft
