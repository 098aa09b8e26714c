/// KeptFutures holds futures of the values that one training step leaves on its ranks, and
/// StepKeeper makes them for the steps of a trainer.
///
/// A StepFuture has the first; a Trainer owns the second and uses it on its caller's thread. What a
/// step leaves is the program's choice (CompileOptions::keep).
/// KF-1: the futures belong to the cluster's actors (remote_actors.h): a value stays on its rank
///       until it is read or its last future has gone, and goes from there to calls of actors.
/// KF-2: if the step fails, those of its values that no rank has left fail with its error.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/driver/step_ledger.h"
#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/actors/remote/remote_actors.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/futures/future.h"

namespace stagecraft {

struct KeptFutures {
  /// By number of the output (kLossValue: of the losses), then by microbatch.
  std::map<std::int32_t, std::vector<Future<at::Tensor>>> values;

  /// Returns null for what the program does not keep.
  [[nodiscard]] const std::vector<Future<at::Tensor>>* find(std::int32_t number) const {
    const auto found = values.find(number);
    return found == values.end() ? nullptr : &found->second;
  }
};

/// Returns futures of values that stay on the rank which has made or will make them. `limit`: the
/// longest wait for one.
[[nodiscard]] std::vector<Future<at::Tensor>> expected_values(
    RemoteActors& actors,
    const StepValues::Place& made,
    const std::vector<StepValueName>& names,
    std::chrono::milliseconds limit);

/// Returns futures of what a task of a step has made (TaskGate::tell).
[[nodiscard]] std::vector<Future<at::Tensor>> task_values(RemoteActors& actors,
                                                          const StepValues::Place& made,
                                                          std::size_t count,
                                                          std::chrono::milliseconds limit);
/// Returns failed futures, for values of the driver's own code.
[[nodiscard]] std::vector<Future<at::Tensor>> values_on_driver(std::size_t count);

class StepKeeper {
 public:
  /// `plan`: of a training step. `limit`: the longest wait for a value. Starts the side of each
  /// rank that will have values. Errors: those of RemoteActors::begin.
  StepKeeper(std::shared_ptr<RemoteActors> actors,
             PlanId plan_id,
             const CompiledProgram& program,
             const Plan& plan,
             std::chrono::milliseconds limit);

  /// Returns the futures of a step that is about to begin; null if the program keeps nothing.
  [[nodiscard]] std::shared_ptr<const KeptFutures> expect(const EnteredStep& step) const;

 private:
  const std::shared_ptr<RemoteActors> actors_;
  const PlanId plan_id_;
  const std::chrono::milliseconds limit_;
  std::map<Rank, std::vector<StepValueName>> names_;  ///< of the values, by their rank
};

}  // namespace stagecraft
