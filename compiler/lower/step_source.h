/// StepSource is the view of a program that a training DAG needs: its stages with their chunks, the
/// tensors that cross between them, and the parameters that they share.
///
/// It is made from a program and a layout, once for training and once for each evaluation. The
/// scheduler makes the DAG (scheduler/dag); lowering reads the rest.
/// SS-1: the DAG's stages are the schedule's. A stage of the program has one for each copy.
#pragma once

#include <string>
#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/scheduler/dag/dag_source.h"
#include "stagecraft/scheduler/model/layout.h"

namespace stagecraft {

struct StepSource {
  DagSource dag;
  std::vector<PlanStage> stages;  ///< by the schedule's number
  /// The tensors that can cross, by EdgeId: activations, gradients, then results of an evaluation.
  std::vector<PlanEdge> edges;
  /// All parameters of each tie of the DAG, in its order.
  std::vector<std::vector<std::string>> tied;
};

/// Returns the source.
/// Errors: ScheduleParameter for a layout of copies of another number of stages.
[[nodiscard]] StepSource step_source(const CompiledProgram& program, const Layout& layout);

}  // namespace stagecraft
