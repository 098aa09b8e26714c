/// StepFuture is the handle of one step. Trainer::step makes it; it may be copied and dropped on
/// any thread.
///
/// SF-1: it completes exactly once: with a result, with an error, or cancelled if the trainer ends
///       first. A result stays readable after that.
#pragma once

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/base/process/home_process.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

class StepFuture {
 public:
  /// Makes a handle that names no step.
  StepFuture() = default;
  explicit StepFuture(Future<StepResult> result) : result_(std::move(result)) {}

  [[nodiscard]] bool valid() const { return result_.valid(); }

  // All functions below throw UsageArgument for a handle that names no step, and in a child of
  // fork().

  /// Returns true once the step has ended in any way.
  [[nodiscard]] bool ready() const;
  [[nodiscard]] bool wait_until(Deadline deadline) const;

  /// Waits for the step and returns its result. May be called again.
  /// Errors: the step's, with rank, stage, microbatch and task if known; Cancelled.
  [[nodiscard]] StepResult get() const;

  /// Returns the result as a future, for continuations and for waits of several (futures/).
  [[nodiscard]] const Future<StepResult>& future() const;

 private:
  Future<StepResult> result_;
  HomeProcess home_;
};

}  // namespace stagecraft
