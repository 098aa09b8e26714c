/// StepFuture is the handle of one step. Trainer::step makes it; it may be copied and dropped on
/// any thread.
///
/// SF-1: it completes exactly once: with a result, with an error, or cancelled if the trainer ends
///       first. A result stays readable after that.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/base/process/home_process.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

struct KeptFutures;  // kept_futures.h

class StepFuture {
 public:
  /// Makes a handle that names no step.
  StepFuture() = default;
  explicit StepFuture(Future<StepResult> result, std::shared_ptr<const KeptFutures> kept = nullptr)
      : result_(std::move(result)), kept_(std::move(kept)) {}

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

  /// Return futures of the losses, or of an output of the module, by microbatch. The values stay on
  /// the ranks that made them until they are read, and can be passed to calls of actors
  /// (RemoteActor). Losses are numbers in double. The ranks hold them as long as this handle, its
  /// copies or the futures are there.
  /// Errors: UsageArgument for what the program does not keep (CompileOptions::keep), and for the
  /// step of an evaluation.
  [[nodiscard]] const std::vector<Future<at::Tensor>>& losses() const;
  [[nodiscard]] const std::vector<Future<at::Tensor>>& outputs(int output = 0) const;

 private:
  [[nodiscard]] const std::vector<Future<at::Tensor>>& kept(std::int32_t number) const;

  Future<StepResult> result_;
  std::shared_ptr<const KeptFutures> kept_;
  HomeProcess home_;
};

}  // namespace stagecraft
