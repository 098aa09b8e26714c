/// ChunkInterpreter runs a chunk of a stage program on real tensors.
///
/// It looks up operators once, when it is made; a run then only fills stacks and calls. Autograd
/// sees the same calls as in the module's own forward, so the gradients are the same.
///
/// Thread: one run at a time per interpreter; different interpreters are independent.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/stage/stage_program.h"

namespace stagecraft {

struct StageState {
  std::vector<at::Tensor> parameters;  ///< in the order of StageProgram::parameters
  std::vector<at::Tensor> buffers;     ///< likewise; written in place if the module does so
};

struct ChunkResult {
  /// In the order of Chunk::outputs, as the operators returned them. Code that sends one to another
  /// stage makes it contiguous (SP-1).
  std::vector<at::Tensor> outputs;
  at::Tensor loss;  ///< undefined if another chunk computes it
};

/// ChunkWatch measures a run: the interpreter calls it, on the run's thread, with its position.
class ChunkWatch {
 public:
  virtual ~ChunkWatch() = default;
  /// Called before the chunk runs this node.
  virtual void before(std::size_t node) = 0;
};

class ChunkInterpreter {
 public:
  /// Copies everything that it runs out of the stage, which need not outlive it. `device`: that of
  /// the tensors it is given, in the place of the program's.
  ChunkInterpreter(const StageProgram& stage,
                   const Chunk& chunk,
                   const c10::Device& device = kProgramDevice);
  ~ChunkInterpreter();
  ChunkInterpreter(ChunkInterpreter&&) noexcept;
  ChunkInterpreter& operator=(ChunkInterpreter&&) noexcept;

  /// Runs one microbatch. `inputs` are in the order of Chunk::inputs; `state` is that of the whole
  /// stage.
  /// Errors: CompileShape for an input of another shape or dtype than captured; otherwise
  ///         LibTorch's own.
  ChunkResult run(const std::vector<at::Tensor>& inputs,
                  const StageState& state,
                  const RandomKey& key,
                  ChunkWatch* watch = nullptr) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
