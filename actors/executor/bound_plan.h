/// BoundPlan: a rank's list as it is run, with everything looked up that a step would look up.
///
/// Made once when a plan is loaded, from the list and the stages it runs; a step reads positions
/// and numbers of slots. Views both.
/// BP-1: a list is verified before it is bound, so that no step meets an instruction that it cannot
///       run, whoever made the list.
#pragma once

#include <cstddef>
#include <vector>

#include "stagecraft/base/ids.h"
#include "stagecraft/compiler/plan/plan.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct BoundInstruction {
  const Instruction* instruction = nullptr;
  std::size_t stage = 0;           ///< among the rank's stages: Run, Accumulate, Update
  std::vector<std::size_t> waits;  ///< positions, of instructions on other streams
  bool is_waited_for = false;      ///< by an instruction on another stream
  /// Send, Recv, Free, Accumulate: the one it is about; Regroup: the one it fills.
  SlotId slot{-1};
  // Run. A number below 0: the task has no such thing.
  std::vector<SlotId> inputs;   ///< forward: per input of the stage; Regroup: what it reads
  std::vector<SlotId> outputs;  ///< forward: per output of the stage
  SlotId saved{-1};             ///< written by a forward, read by its backward
  std::vector<std::vector<SlotId>> output_gradients;  ///< backward: per output, in order of summing
  std::vector<SlotId> input_gradients;  ///< backward: per input that owes one; empty for W
  SlotId parameter_gradients{-1};
  bool is_accumulated_next = false;  ///< these, before the gradients of any other task of the stage
};

struct BoundPlan {
  const RankPlan* plan = nullptr;
  std::vector<BoundInstruction> list;  ///< by position
  std::vector<std::size_t> receives;   ///< positions, ascending
};

/// What a list may count on beyond itself.
struct BindScope {
  std::vector<const StageProgram*> stages;  ///< those of the list, in its order
  std::size_t replica_groups = 0;           ///< how many there are to sum in
  std::size_t ties = 0;                     ///< likewise
  bool training = true;
};

/// Errors: PlanInvalid with everything that verify() finds, for a group or stage that there is not,
///         and for a task without a slot for one of its stage's values or out of its turn.
[[nodiscard]] BoundPlan bind_plan(const RankPlan& plan, const BindScope& scope);

}  // namespace stagecraft
