/// 1F1B starts a backward as soon as one can run, so a stage holds few activations.
///
///     F0 F1  . B0 F2 B1 F3 B2  . B3     F0 F1  . B0 F2 B1 F3 B2  . B3     two encoders
///        F0 B0 F1 B1 F2 B2 F3 B3        F0 F1  . B0 F2 B1 F3 B2  . B3     and a head
///                                          F0 B0 F1 B1 F2 B2 F3 B3
///
/// Stage s runs i(s) forwards first, with i(s) = 1 + the largest i of its consumers (1 for a sink),
/// then alternates. On a chain this is PipeDream-flush (Narayanan et al., "Memory-Efficient
/// Pipeline-Parallel DNN Training") and DAPPLE; on a DAG it is the default of GraphPipe (Jeon et
/// al.).
#pragma once

#include <vector>

#include "stagecraft/scheduler/model/schedule.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Returns the unit-time array, one stage per row.
/// Errors: ScheduleParameter for no stage, no microbatch or a graph with a cycle.
[[nodiscard]] Schedule one_f_one_b(const StageGraph& stages, int microbatches);
[[nodiscard]] Schedule one_f_one_b(int stages, int microbatches);

/// Returns i(s) for every stage. Requires: acyclic.
[[nodiscard]] std::vector<int> in_flight_counts(const StageGraph& stages);

}  // namespace stagecraft
