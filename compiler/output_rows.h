/// output_rows: which dimension of what a module returns has the rows of its microbatch.
///
/// Asked when a prediction is compiled: outputs of all microbatches come one after the other in
/// that dimension. Usually it is the first one; a module that returns time first, or the states of
/// a recurrent layer, has it elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/compiler/graph.h"
#include "stagecraft/compiler/parts.h"
#include "stagecraft/compiler/workload.h"

namespace stagecraft {

/// Returns for every output the first dimension that is twice as large for a microbatch of twice
/// the rows, which the module is run on once; where it takes no other number of rows, the first one
/// that divides by the rows it takes. 0 for a number, and where no input has rows.
/// Errors: CompileShape for an output without one.
[[nodiscard]] std::vector<std::int64_t> row_dimensions(const Workload& workload,
                                                       const Graph& graph,
                                                       const FirstPart& part);

}  // namespace stagecraft
