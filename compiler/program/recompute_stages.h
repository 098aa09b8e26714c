/// recompute_stages puts the parts to be recomputed into chunks of their own, and measures the
/// bytes that their stages then keep. compile calls it once, after find_gradient_flow.
#pragma once

#include <vector>

#include "stagecraft/compiler/stage/partition.h"
#include "stagecraft/compiler/stage/probe.h"
#include "stagecraft/compiler/stage/recompute.h"
#include "stagecraft/scheduler/model/stage_graph.h"

namespace stagecraft {

/// Cuts the stages that have a backward at the borders of the parts to be recomputed; the other
/// stages keep nothing anyway. Code on the driver is not recomputed. Regions that overlap become
/// one region. A region inside another one is part of that one.
/// `runs`: the result of run_stages for the partition; their autograd graphs are freed.
/// Errors: UsageArgument for a name that nothing has, with the names that exist, and for a name of
///         parts without a backward; those of cut_into_chunks.
void recompute_stages(const Graph& graph,
                      const StageGraph& stage_graph,
                      const Recompute& recompute,
                      Partition& partition,
                      std::vector<StageRun> runs);

}  // namespace stagecraft
