/// Variant: what a program's stages compute for microbatches of another shape than that of the
/// example batch, or that lie in memory in another order.
///
/// Made by Variants, when a step meets a shape for the first time; run by executors and by the
/// reference, on the parameters and buffers of the program. Immutable.
/// VT-1: a variant fits the program: stage by stage it has the same parameters and buffers, and
///       inputs and outputs that mean the same, in the same order. So the program's lists run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/split_batch.h"
#include "stagecraft/compiler/stage_program.h"

namespace stagecraft {

struct Variant {
  int number = 1;                          ///< in the order of capture; 0 is the program itself
  std::uint64_t random = 0;                ///< RandomKey::shape; follows from the sizes alone
  std::vector<BatchSlice> inputs, labels;  ///< of a microbatch
  std::vector<StageProgram> stages;        ///< by id
};

/// What keeps `stage` from being run in the place of `program` (VT-1), as a sentence without its
/// subject: "has no parameter head.bias any more". Empty: nothing.
[[nodiscard]] std::string misfit(const StageProgram& program, const StageProgram& stage);

/// Likewise of a stage that evaluates on the parameters and buffers of `program`: it may lack some
/// of them, and trains none.
[[nodiscard]] std::string misfit_of_evaluation(const StageProgram& program,
                                               const StageProgram& stage);

}  // namespace stagecraft
