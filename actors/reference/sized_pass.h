/// SizedPass runs forward and backward of a batch in one process, stage by stage, for a program
/// whose stages take microbatches of different sizes (resize.h).
///
/// It is a part of the reference. Unlike the reference, a pass differentiates each stage by itself,
/// because autograd's own graph over all stages would add the gradients of a stage's microbatches
/// in another order.
/// SZ-1: every stage runs its own microbatches in ascending order, forwards and backwards, and adds
///       their gradients in that order. Rows of results cross between stages, as between ranks.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/compiler/shapes/parts.h"

namespace stagecraft {

class SizedPass {
 public:
  /// `stages`: the stages of the program, in an order in which they can run. Views all arguments.
  SizedPass(const CompiledProgram& program, std::vector<StageRuntime>& stages, const Parts& parts);

  /// Adds the gradients of the batch to the stages' buckets. Returns the losses, one per microbatch
  /// of the stage that computes them. `first`: the key of the step's microbatch 0.
  /// `loss_scale`: LossScale::factor.
  [[nodiscard]] std::vector<double> run(const RandomKey& first, double loss_scale);

 private:
  /// ByMicrobatch holds tensors by the microbatches of the stage that made them.
  using ByMicrobatch = std::map<int, at::Tensor>;

  void forward(const StageRuntime& stage, Microbatch m, const RandomKey& key);
  void backward(StageRuntime& stage, Microbatch m, double loss_scale);
  [[nodiscard]] at::Tensor input(const StageInput& input, StageId reader, Microbatch m) const;
  [[nodiscard]] at::Tensor taken(const ByMicrobatch& made,
                                 StageId maker,
                                 StageId reader,
                                 Microbatch m) const;
  [[nodiscard]] int size_of(StageId s) const { return program_->stage_graph.microbatch_size(s); }

  const CompiledProgram* program_;
  std::vector<StageRuntime>* stages_;
  const Parts* parts_;
  // The next members hold the samples in progress: the least number that is whole microbatches of
  // every stage.
  std::map<ValueId, ByMicrobatch> activations_;
  std::map<std::pair<ValueId, StageId>, ByMicrobatch> gradients_;  // by their consumer
  std::map<std::pair<StageId, Microbatch>, SavedStage> saved_;
  std::vector<double> losses_;
};

}  // namespace stagecraft
