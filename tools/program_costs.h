/// program_costs: what a compiled program's operators cost, and what that makes of its stages.
/// `import` and `train` share it.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/program.h"
#include "stagecraft/scheduler/costs.h"

namespace stagecraft::tools {

/// Returns its operators, with their stages, and its parameters: measured now on the first
/// microbatch of this batch, unless compiling did. Errors: those of measure_operators.
[[nodiscard]] Costs operator_costs(const Program& program,
                                   const Batch& inputs,
                                   const Batch& labels,
                                   int threads);

/// In a microbatch of the program's; where no input is split, it counts as one.
[[nodiscard]] int samples_of(const Program& program);

/// Says in which operator or parameter the costs are another model's, however it was cut for them;
/// nothing when they are the program's.
[[nodiscard]] std::optional<std::string> first_difference(const Costs& costs,
                                                          const Program& program);

/// Returns the costs with what the operators of each of the program's stages add up to, on its
/// microbatches, in the place of stages and of what they hand on.
/// Requires: first_difference() finds nothing. Errors: UsageArgument for costs that make no graph.
[[nodiscard]] Costs with_stages(const Costs& costs, const Program& program);

}  // namespace stagecraft::tools
