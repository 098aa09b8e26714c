/// BoundPlan is a rank's instruction list with all lookups of a step done in advance.
///
/// bind_plan() makes it once when a plan is loaded, from the list and the stages it runs. It views
/// both. A step reads positions and slot numbers from it.
/// BP-1: a list is verified before it is bound, so that no step meets an instruction that it cannot
///       run, for any source of the list.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/actors/executor/setup/plan_share.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct BoundInstruction {
  const Instruction* instruction = nullptr;
  /// Index among the rank's stages: Run, Accumulate, Update, an exchange.
  std::size_t stage = 0;
  Microbatch microbatch;           ///< of a task: its number in the step
  Rank peer;                       ///< Send, Recv
  Microbatch tagged;               ///< Send, Recv: the microbatch in its tag
  std::size_t bucket = 0;          ///< Update: position among the buckets of its stage
  std::vector<std::size_t> waits;  ///< positions of work on other streams
  bool is_waited_for = false;      ///< work on another stream waits for it
  /// Send, Recv, Free, Accumulate, an exchange: the slot it works on; Regroup: the slot it fills.
  SlotId slot{-1};
  /// An exchange: the microbatches whose samples it moves, ascending by rank of its group.
  std::vector<Microbatch> exchanged;
  // For Run. A slot below 0: these chunks of the task have none.
  std::vector<SlotId> inputs;   ///< forward: per input of the stage; Regroup: the slots it reads
  std::vector<SlotId> outputs;  ///< forward: per output of the stage
  SlotId saved{-1};             ///< kept between the parts of a task, and by a forward for its
                                ///< backward
  bool begins = true;           ///< forward: it has the first chunk
  bool keeps_graphs = false;    ///< forward: a backward of its stage follows
  std::vector<std::vector<SlotId>> output_gradients;  ///< backward: per output, in order summed
  std::vector<SlotId> input_gradients;  ///< backward: per input whose gradient is complete
  SlotId parameter_gradients{-1};
  bool is_accumulated_next = false;  ///< before the gradients of any other task of the stage
};

/// BoundPlan views the share and the programs that it was made of.
struct BoundPlan {
  const PlanShare* share = nullptr;
  std::vector<BoundInstruction> list;  ///< by position
  std::vector<std::size_t> receives;   ///< positions, ascending
};

/// Binds the list.
/// Errors: PlanInvalid with all findings of verify(), for programs of other stages, for a task
/// without a slot for one of its stage's values, and for a task out of its turn.
[[nodiscard]] BoundPlan bind_plan(const PlanShare& share, const StagePrograms& programs);

}  // namespace stagecraft
