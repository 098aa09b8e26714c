/// StageRuntime: one stage as a rank, or the reference, runs it: program, interpreter, parameters
/// and buffers. Confined to the thread that trains it.
#pragma once

#include <vector>

#include "stagecraft/actors/executor/bucket.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/interpreter.h"

namespace stagecraft {

struct StageRuntime {
  /// Starts from the program's parameters and buffers, with copies of its own.
  /// Requires: `compiled` outlives the runtime.
  StageRuntime(const CompiledProgram& compiled, StageId id, const Optimizer& optimizer);

  /// Weights, optimizer state and buffers under the names they have in checkpoints; the living
  /// tensors.
  void append_state(const CompiledProgram& compiled, std::vector<NamedTensor>& all) const;

  const StageProgram* program;
  StageInterpreter interpreter;
  Bucket bucket;
  StageState state;
};

}  // namespace stagecraft
