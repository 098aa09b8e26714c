/// StageRuntime: one stage as a rank, or the reference, runs it: program, interpreter, parameters
/// and buffers.
///
/// Confined to the thread that trains it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/bucket.h"
#include "stagecraft/actors/executor/saved.h"
#include "stagecraft/compiler/compiled_program.h"
#include "stagecraft/compiler/interpreter.h"
#include "stagecraft/scheduler/cell.h"

namespace stagecraft {

/// What a forward makes of one microbatch. Its tensors hang on no graph.
struct StageForward {
  std::vector<at::Tensor> outputs;  ///< in the order of StageProgram::outputs
  at::Tensor loss;                  ///< undefined where another stage computes it
  SavedStage saved;                 ///< empty unless graphs were to be kept
};

/// What a backward makes of it.
struct StageGradients {
  std::vector<at::Tensor> inputs;      ///< per input that owes one; contiguous
  std::vector<at::Tensor> parameters;  ///< per trained parameter; undefined where none arrives
};

class StageRuntime {
 public:
  /// Starts from the program's parameters and buffers, with copies of its own.
  /// Requires: `compiled` outlives the runtime.
  StageRuntime(const CompiledProgram& compiled, StageId id, const Optimizer& optimizer);

  /// Runs the forward of one microbatch. `inputs` in the order of StageProgram::inputs; their graphs
  /// are left alone.
  [[nodiscard]] StageForward forward(const std::vector<at::Tensor>& inputs,
                                     bool keeps_graphs,
                                     const RandomKey& key) const;

  /// Runs a backward: B, or one of its halves. The input half leaves `parameters` empty, and the
  /// weight half behind it `inputs`; a weight half that comes first does all.
  /// `output_gradients`: per output; undefined where nobody sends one.
  [[nodiscard]] StageGradients backward(CellKind kind,
                                        SavedStage& saved,
                                        const std::vector<at::Tensor>& output_gradients) const;

  /// Weights, optimizer state and buffers under the names they have in checkpoints; the living
  /// tensors.
  void append_state(const CompiledProgram& compiled, std::vector<NamedTensor>& all) const;

  /// The name of the model's parameter `position`, where this stage has it.
  [[nodiscard]] std::optional<std::string> name_of_parameter(std::int64_t position) const;

  const StageProgram* program;
  StageInterpreter interpreter;
  Bucket bucket;
  StageState state;
};

}  // namespace stagecraft
