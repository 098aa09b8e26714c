/// Bucket: one stage's parameters, gradients and optimizer state as flat buffers.
///
/// Parameters are leaf views into the flat buffer, padded to 64 bytes, so that the optimizer and
/// the scaling run over memory in one piece while autograd still sees one tensor per parameter.
/// Confined to the plan thread.
///
/// BU-1: what a view holds does not depend on where in the buffer it lies: bucket layout changes no
///      bit.
/// BU-2: gradients of a step are copied in first, then added, in the order of the calls.
#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/compiler/stage_program.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

class Bucket {
 public:
  /// Everything zero: weights come from elsewhere.
  Bucket(const StageProgram& stage, const Optimizer& optimizer);

  /// The leaves autograd differentiates to, in the order of StageProgram::parameters.
  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
  /// Where gradients of the trained parameters arrive, in their order.
  [[nodiscard]] const std::vector<torch::autograd::Edge>& gradient_edges() const {
    return gradient_edges_;
  }

  /// Forgets the gradients of the last step.
  void begin_step() { empty_ = true; }

  /// Adds one microbatch's gradients times its weight, one per gradient edge; an undefined one
  /// counts as zero.
  void accumulate(const std::vector<at::Tensor>& gradients, double weight = 1.0);

  /// Turns the sum over microbatches into their mean, given what they weigh together; returns the
  /// squared norm of each counted parameter's.
  [[nodiscard]] std::vector<SquaredNorm> average(double weight);

  /// One optimizer update. `scale` is what clipping multiplies the gradient with. `step` counts
  /// from 1.
  void update(const Optimizer& optimizer, double learning_rate, double scale, std::int64_t step);

  /// Parameters first (kWeight), then the optimizer's state; the living tensors.
  [[nodiscard]] std::vector<NamedTensor> state() const;

  /// The gradients of all trained parameters, one buffer per dtype; copies of a stage have equal
  /// ones.
  [[nodiscard]] const std::vector<at::Tensor>& flat_gradients() const { return flat_gradients_; }

  /// The gradient buffers, one view per trained parameter.
  [[nodiscard]] std::vector<at::Tensor> gradients() const;

  /// That of one. Requires: it trains.
  [[nodiscard]] at::Tensor gradient(std::string_view parameter) const;

 private:
  std::vector<std::string> names_;                      // of all parameters
  std::vector<at::Tensor> parameters_;                  // likewise
  std::vector<std::optional<std::int64_t>> positions_;  // of the trained ones that are counted here
  std::vector<std::string> trained_names_;
  std::vector<OptimizedParameter> trained_;
  std::vector<std::string_view> state_names_;
  std::vector<at::Tensor> flat_gradients_;  // one per dtype
  std::vector<torch::autograd::Edge> gradient_edges_;
  bool empty_ = true;
};

}  // namespace stagecraft
