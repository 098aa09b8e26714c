/// emit makes the instructions of a rank list from the nodes that its ranks issue.
///
/// It is a pass of lower. It adds what a graph of chunks leaves out: the driver's tensors, tensors
/// that are regrouped for another size of microbatches, sums of a microbatch's gradients into
/// buckets, and the end of each collective just before its first user. Later passes add slots and
/// waits.
/// EM-1: adjacent chunks of a task are one Run unless a collective begins or is needed between
///       them. So a stage without communication inside is one Run.
/// EM-2: a list whose ranks have several units of samples (LA-3) does each task once per unit.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/training/step_source.h"
#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// EmitInput holds the parts of a step that all its lists share.
struct EmitInput {
  const TrainingDag& dag;
  const DagAdjacency& edges;
  const StepSource& source;
  const CompiledProgram& program;
  const PlanTables& tables;
  int units = 1;                     ///< of the step (LA-3)
  std::vector<int> group_of_bucket;  ///< positions in PlanTables::groups; -1: not summed
  std::vector<int> group_of_tie;
};

/// EmittedList holds a list and its peers.
struct EmittedList {
  /// Peer is the other end of a list's transfers: for each rank, the rank that has the same unit of
  /// samples.
  struct Peer {
    int place = kNone;  ///< position in TrainingDag::places; kNone: the driver
    int unit = 0;       ///< of the list's own units
  };
  RankList list;            ///< without ids of slots and waits: a SlotId is the number of a value
  std::vector<Peer> peers;  ///< by PeerId
};

/// Returns the list. `nodes`: those of rank list `place`, in issue order.
[[nodiscard]] EmittedList emit(const EmitInput& input, int place, const std::vector<int>& nodes);

}  // namespace stagecraft
