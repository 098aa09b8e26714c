/// recompute_stages: makes chunks of their own of what is to be recomputed, and measures what their
/// stages then keep. Used by compile, once, behind find_gradient_flow.
#pragma once

#include <vector>

#include "stagecraft/compiler/partition.h"
#include "stagecraft/compiler/probe.h"
#include "stagecraft/compiler/recompute.h"
#include "stagecraft/scheduler/stage_graph.h"

namespace stagecraft {

/// Cuts the stages that have a backward at the borders of what is to be recomputed; the others keep
/// nothing anyway. Regions that overlap become one; inside of another, one is part of that.
/// `runs`: what run_stages returned for the partition; their graphs are gone afterwards.
/// Errors: UsageArgument for a name that nothing has, with what there is, and for one of which
///         nothing has a backward; those of cut_into_chunks.
void recompute_stages(const Graph& graph,
                      const StageGraph& stage_graph,
                      const Recompute& recompute,
                      Partition& partition,
                      std::vector<StageRun> runs);

}  // namespace stagecraft
