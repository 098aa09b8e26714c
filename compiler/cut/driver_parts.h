/// driver_parts divides the stages of a cut where they run code on the driver (native/on_driver.h).
///
///     stage "head":  conv  sort | matcher | gather  loss      -> "head", "matcher", "head.2"
///
/// A part on the driver has code of the driver alone. What a stage computes before its code, and
/// what does not depend on it, is the first part. The parts take the place of the stages in the
/// program; a schedule lists the stages.
#pragma once

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"

namespace stagecraft {

/// Returns the assignment of the operators to parts; the given one if no code runs on the driver.
/// Errors: CompilePartition for a stage that has code of the driver alone, and for memory that is
/// written on both sides of such code.
[[nodiscard]] StageAssignment driver_parts(const Graph& graph, StageAssignment stages);

}  // namespace stagecraft
