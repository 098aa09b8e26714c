/// kept_values marks what each training step leaves on the ranks that make it: losses, and outputs
/// of the module (StepFuture::losses, StepFuture::outputs).
#pragma once

#include <vector>

#include "stagecraft/compiler/graph/graph.h"
#include "stagecraft/compiler/graph/stage_assignment.h"
#include "stagecraft/compiler/stage/partition.h"

namespace stagecraft {

/// KeptValues is the caller's choice.
struct KeptValues {
  bool losses = false;
  std::vector<int> outputs;  ///< by their numbers among the tensors that forward returns
};

/// Divides a graph as partition() does. Each kept output also becomes an output of its stage.
/// Errors: those of partition; UsageArgument for an output that the module does not have, and for
/// what no rank makes.
[[nodiscard]] Partition partition_keeping(const Graph& graph,
                                          const StageAssignment& assignment,
                                          const KeptValues& keep);

}  // namespace stagecraft
