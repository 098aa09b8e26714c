/// planned_bytes computes, before anything runs, how much memory a plan will hold on each rank.
#pragma once

#include <cstdint>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

/// Returns the most bytes that a rank of the list holds at once of activations, their gradients and
/// values that autograd keeps, from the sizes measured when the program was compiled.
[[nodiscard]] std::int64_t peak_activation_bytes(const CompiledProgram& program,
                                                 const PlanTables& tables,
                                                 const RankList& list);

}  // namespace stagecraft
