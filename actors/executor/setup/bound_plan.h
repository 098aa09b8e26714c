/// BoundPlan: a rank's instruction list with everything looked up that a step would look up.
///
/// Made once when a plan is loaded, from the list and the stages it runs. It views both. A step
/// reads positions and slot numbers from it.
/// BP-1: a list is verified before it is bound, so that no step meets an instruction that it cannot
///       run, for any source of the list.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct BoundInstruction {
  const Instruction* instruction = nullptr;
  std::size_t stage = 0;           ///< index among the rank's stages: Run, Accumulate, Update
  std::vector<std::size_t> waits;  ///< positions of instructions on other streams
  bool is_waited_for = false;      ///< an instruction on another stream waits for it
  /// Send, Recv, Free, Accumulate: the slot it works on; Regroup: the slot it fills.
  SlotId slot{-1};
  // For Run. A slot below 0: the task has none.
  std::vector<SlotId> inputs;   ///< forward: per input of the stage; Regroup: the slots it reads
  std::vector<SlotId> outputs;  ///< forward: per output of the stage
  SlotId saved{-1};             ///< written by a forward, read by its backward
  std::vector<std::vector<SlotId>> output_gradients;  ///< backward: per output, in order summed
  std::vector<SlotId> input_gradients;  ///< backward: per input that owes one; empty for W
  SlotId parameter_gradients{-1};
  bool is_accumulated_next = false;  ///< before the gradients of any other task of the stage
};

struct BoundPlan {
  const RankPlan* plan = nullptr;
  std::vector<BoundInstruction> list;  ///< by position
  std::vector<std::size_t> receives;   ///< positions, ascending
};

/// Everything that a list may refer to beyond itself.
struct BindScope {
  std::vector<const StageProgram*> stages;  ///< those of the list, in its order
  std::size_t replica_groups = 0;           ///< number of groups to sum in
  std::size_t ties = 0;                     ///< number of ties
  bool training = true;
};

/// Errors: PlanInvalid with all findings of verify(), for a group or stage that does not exist, for
///         a task without a slot for one of its stage's values, and for a task out of its turn.
[[nodiscard]] BoundPlan bind_plan(const RankPlan& plan, const BindScope& scope);

}  // namespace stagecraft
