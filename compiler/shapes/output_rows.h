/// output_rows finds which dimension of each module output has the rows of its microbatch.
///
/// It is used when a prediction is compiled: the outputs of all microbatches are concatenated in
/// that dimension. Usually it is the first one. A module that returns time first, or the states of
/// a recurrent layer, has it elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/module/workload.h"
#include "stagecraft/compiler/shapes/parts.h"

namespace stagecraft {

/// Returns for every output the first dimension that doubles in size for a microbatch of twice the
/// rows; the module is run on such a microbatch once. If it takes no other number of rows, returns
/// the dimension that divides by the number of rows. If several do, the module is run on the rows
/// in reverse order, and the dimension is the one whose blocks come in reverse order. For a
/// microbatch of one row it is the first dimension of size 1. Returns 0 for a number, and if no
/// input has rows.
/// Errors: CompileShape for an output without such a dimension, or with several.
[[nodiscard]] std::vector<std::int64_t> row_dimensions(const Workload& workload,
                                                       const Graph& graph,
                                                       const FirstPart& part);

}  // namespace stagecraft
