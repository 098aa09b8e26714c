/// DecidedTasks holds what a rank runs for each task of a step whose order the driver decides
/// (Dispatch::Decided): the task's receives, its run and its sends, and the Frees that follow.
///
/// The step loop makes one for such a step and uses it on its plan thread.
/// DTA-1: a value is freed when all instructions that use it have run, in whichever order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "stagecraft/compiler/plan/instruction.h"

namespace stagecraft {

class DecidedTasks {
 public:
  /// Views the list, in which each value has a slot of its own (own_slots.h).
  explicit DecidedTasks(const std::vector<Instruction>& list);

  /// Returns the positions of the task whose Run is at `run`, in their order, and takes them out.
  /// Also takes the receives of other tasks that bring what this task reads.
  /// Errors: PlanInvalid if there is no such Run, or it was taken before.
  [[nodiscard]] std::vector<std::size_t> take(std::size_t run);

  /// Returns the positions of the Frees of what nobody uses after this instruction.
  [[nodiscard]] std::vector<std::size_t> frees_after(std::size_t position);

  /// Returns the positions that belong to no task: sums, vote and update. Frees are not among them.
  /// Errors: PlanInvalid if a task is left.
  [[nodiscard]] const std::vector<std::size_t>& rest() const;

 private:
  /// Appends the position, after those that bring what it reads.
  void take_with_inputs(std::size_t position, std::vector<std::size_t>& taken);

  const std::vector<Instruction>* list_;
  std::map<std::size_t, std::vector<std::size_t>> tasks_;  ///< by the position of the Run
  std::vector<std::size_t> rest_;
  std::vector<bool> is_taken_;       ///< by position
  std::vector<std::size_t> maker_;   ///< by slot: the position that fills it
  std::vector<std::size_t> free_;    ///< by slot: that of its Free
  std::vector<std::int32_t> users_;  ///< by slot: those that have not run
};

}  // namespace stagecraft
