/// emit makes the instructions of a rank list from the nodes that its ranks issue.
///
/// A pass of lower. It adds what a graph of chunks leaves out: the driver's tensors, tensors that
/// are regrouped for another size of microbatches, sums of a microbatch's gradients into buckets,
/// and the end of each collective just before its first user. Slots and waits come later.
/// EM-1: chunks of a task that stand next to each other, and between which no collective begins or
///       is needed, are one Run. So a stage without communication inside is one Run.
/// EM-2: a list whose ranks have several units of samples (LA-3) does each task once per unit.
#pragma once

#include <vector>

#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/training/step_source.h"
#include "stagecraft/scheduler/dag/dag.h"

namespace stagecraft {

/// Holds the parts of a step that all its lists share.
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

/// A list, and what each of its peers is.
struct EmittedList {
  /// The other end of a list's transfers: for each rank, that which has the same unit of samples.
  struct Peer {
    int place = kNone;  ///< position in TrainingDag::places; kNone: the driver
    int unit = 0;       ///< of the list's own units
  };
  RankList list;            ///< without ids of slots and waits: a SlotId is the number of a value
  std::vector<Peer> peers;  ///< by PeerId
};

/// `nodes`: those of rank list `place`, in issue order.
[[nodiscard]] EmittedList emit(const EmitInput& input, int place, const std::vector<int>& nodes);

}  // namespace stagecraft
