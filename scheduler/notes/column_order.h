/// column_order checks whether the columns of an array are times.
///
/// In some files only the order of a row counts, and columns mean nothing: PyTorch's own dumps put
/// a cell beside a cell that it needs. They run, because ranks wait for data. Pure; any thread.
#pragma once

#include <cstddef>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns how many cells are in or before the column of a cell that they need. V20 to V23 forbid
/// this in an array. A missing cell does not count.
[[nodiscard]] std::size_t count_early_cells(const Schedule& array, const StageGraph& graph);

}  // namespace stagecraft
