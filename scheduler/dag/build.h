/// build_dag makes the graph of one step: every chunk of every stage for every microbatch, the
/// updates, and the edges that data needs.
#pragma once

#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Returns the nodes and edges before anything is placed or ordered. Backwards are whole. Without
/// `training` there are only forwards. A backward that does nothing (StageGraph::is_surplus) is a
/// node without edges to other stages. `microbatches`: the number of the step, over all replicas of
/// the schedule; each stage runs its share.
/// Requires: DSO-1; each stage's size divides its share.
[[nodiscard]] TrainingDag build_dag(DagSource source, int microbatches, bool training = true);

}  // namespace stagecraft
