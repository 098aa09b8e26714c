/// OtherShape holds the computations of a program's stages for microbatches of another shape, or
/// of another order in memory, than those of the example batch.
///
/// ShapeCaptures makes it when a step meets a shape for the first time. Executors and the reference
/// run it on the program's parameters and buffers. It is immutable.
/// VT-1: it fits the program: stage by stage it has the same parameters and buffers, and
///       inputs and outputs with the same meaning, in the same order. The program's lists can
///       therefore run it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/compiler/module/split_batch.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct OtherShape {
  int number = 1;                          ///< in the order of capture; 0 is the program itself
  std::uint64_t random = 0;                ///< RandomKey::shape; follows from the sizes alone
  std::vector<BatchSlice> inputs, labels;  ///< of a microbatch
  std::vector<StageProgram> stages;        ///< by id
};

/// Returns the reason why `stage` cannot run in the place of `program` (VT-1), as a sentence
/// without its subject: "has no parameter head.bias any more". Empty if it can.
[[nodiscard]] std::string misfit(const StageProgram& program, const StageProgram& stage);

/// Does the same for a stage that evaluates on the parameters and buffers of `program`: it may lack
/// some of them, and trains none.
[[nodiscard]] std::string misfit_of_evaluation(const StageProgram& program,
                                               const StageProgram& stage);

}  // namespace stagecraft
