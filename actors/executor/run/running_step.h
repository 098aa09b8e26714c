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

  [[nodiscard]] bool trains() const { return order.program == kTraining; }

  /// Returns shape and weight of an instruction's microbatch.
  [[nodiscard]] PartRun part(const BoundInstruction& bound) const {
    return part_of(order.parts, bound.microbatch.index());
  }

  /// Returns the stages for the shape of an instruction's microbatch.
  [[nodiscard]] const LoadedShape& shape(const BoundInstruction& bound) const {
    return program.shapes.at(part(bound).shape);
  }
};

}  // namespace stagecraft
