/// program_costs returns the costs of a compiled program's operators, and those of its stages.
/// `import` and `train` share it.
#pragma once

#include <optional>
#include <string>

#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/scheduler/costs/costs.h"

namespace stagecraft::tools {

/// Returns its operators, with their stages, and its parameters. Measures them now on the first
/// microbatch of this batch, unless compiling did. Errors: those of measure_operators.
[[nodiscard]] Costs operator_costs(const Program& program,
                                   const Batch& inputs,
                                   const Batch& labels,
                                   int threads);

/// Returns the samples of a microbatch; if no input is split, it counts as one.
[[nodiscard]] int samples_of(const Program& program);

/// Returns the first operator or parameter by which the costs belong to another model, for any cut
/// of it; nothing if they are the program's.
[[nodiscard]] std::optional<std::string> first_difference(const Costs& costs,
                                                          const Program& program);

/// Returns the costs with the sums of the operators of each of the program's stages, on its
/// microbatches, in place of stages and of what they pass on.
/// Requires: first_difference() finds nothing. Errors: UsageArgument for costs that make no graph.
[[nodiscard]] Costs with_stages(const Costs& costs, const Program& program);

}  // namespace stagecraft::tools
