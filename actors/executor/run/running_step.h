/// RunningStep is the state of the one step that a rank runs.
///
/// The executor makes it from an order. The parts that run the step share it, and the executor
/// drops it when the step ends in any way.
#pragma once

#include "stagecraft/actors/executor/nccl/nccl_links.h"
#include "stagecraft/actors/executor/run/loaded_program.h"
#include "stagecraft/actors/executor/run/step_losses.h"
#include "stagecraft/actors/executor/setup/bound_plan.h"
#include "stagecraft/actors/executor/step/step_parts.h"
#include "stagecraft/actors/executor/step/step_record.h"
#include "stagecraft/actors/executor/step/step_values.h"
#include "stagecraft/compiler/native/count.h"

namespace stagecraft {

struct RunningStep {
  const StepOrder& order;
  LoadedProgram& program;
  int microbatches = 1;  ///< of a batch
  LoadedPlan& plan = *program.plan;
  StepLosses losses = {};
  StepCounts counts = {};
  MadeValues kept = {};        ///< the outputs that stay on the rank
  NcclLinks* links = nullptr;  ///< null: tensors cross in the host's memory between processes

  /// Experts get gradients of samples of several microbatches at once, so losses are multiplied by
  /// the weights of their microbatches. Without experts, the sums of gradients take the weights.
  const bool weighs_losses = divides_weights(*plan.bound.share->tables);

  [[nodiscard]] bool trains() const { return order.program == kTraining; }

  /// Returns the stages for the shape of a microbatch.
  [[nodiscard]] const LoadedShape& shape(Microbatch m) const {
    return program.shapes.at(part_of(order.parts, m.index()).shape);
  }
  /// Returns the factor of the loss of a microbatch in its backward.
  [[nodiscard]] double loss_factor(Microbatch m) const {
    return weighs_losses ? order.loss_scale.factor * weight(m) : order.loss_scale.factor;
  }
  /// Returns the weight with which gradients of a microbatch are added up.
  [[nodiscard]] double sum_weight(Microbatch m) const { return weighs_losses ? 1.0 : weight(m); }

 private:
  [[nodiscard]] double weight(Microbatch m) const { return part_of(order.parts, m.index()).weight; }
};

}  // namespace stagecraft
