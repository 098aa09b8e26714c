/// Bucket: one stage's parameters, gradients and optimizer state as flat buffers.
///
/// Parameters are leaf views into the flat buffer, padded to 64 bytes, so that sums over replicas
/// run over memory in one piece while autograd still sees one tensor per parameter.
/// Confined to the plan thread.
///
/// BU-1: what a view holds does not depend on where in the buffer it lies: bucket layout changes no
///      bit.
/// BU-2: gradients of a step are copied in first, then added, in the order of the calls; those that
///       were taken before (GS-1) in the same order.
/// BU-3: a frozen parameter (PG-2) has a place for its gradient, which ties and copies of the stage
///       sum like any other, and nothing else here.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <torch/csrc/autograd/edge.h>

#include "stagecraft/actors/executor/gradient_sums.h"
#include "stagecraft/actors/executor/optimizer_registry.h"
#include "stagecraft/actors/executor/parameter_groups.h"
#include "stagecraft/compiler/stage_program.h"
#include "stagecraft/futures/collective/vote.h"

namespace stagecraft {

/// What of the options of a trainer or a reference a bucket goes by.
struct BucketOptions {
  std::vector<ParameterGroup> groups;
  DecayOn decay_on = DecayOn::All;
  bool keep_gradients = false;
};

template <class Options>
[[nodiscard]] BucketOptions bucket_options(const Options& options) {
  return {options.groups, options.decay_on, options.keep_gradients};
}

/// What an update makes of sums of gradients.
struct GradientScale {
  double weight = 1.0;  ///< what the microbatches weigh together: the mean is the sum over it
  double clip = 1.0;    ///< what clipping multiplies the mean with
};

class Bucket {
 public:
  /// Everything as before the first step, weights zero: they come from elsewhere.
  Bucket(const StageProgram& stage, const Optimizer& optimizer, const BucketOptions& options = {});

  /// The leaves autograd differentiates to, in the order of StageProgram::parameters.
  [[nodiscard]] const std::vector<at::Tensor>& parameters() const { return parameters_; }
  /// Where gradients of the trained parameters arrive, in their order.
  [[nodiscard]] const std::vector<torch::autograd::Edge>& gradient_edges() const {
    return gradient_edges_;
  }

  /// Forgets the gradients of the last step.
  void begin_step() { sums_->begin(); }

  /// Adds one microbatch's gradients times its weight, one per gradient edge; an undefined one
  /// counts as zero, unless it was taken.
  void accumulate(const std::vector<at::Tensor>& gradients, double weight = 1.0) {
    sums_->add(gradients, weight);
  }

  /// While it lives, backwards of one microbatch hand the gradients of these, by number, to the
  /// sums; without a weight they do not. Requires: accumulate() comes next, for that microbatch and
  /// with that weight.
  [[nodiscard]] GradientSums::Taking take(const std::vector<std::size_t>& trained,
                                          std::optional<double> weight) const {
    return {*sums_, trained, weight};
  }

  /// The squared norm of the mean over microbatches, given what they weigh together, of each
  /// counted parameter that is not frozen. Reads the sums once, and leaves them as they are.
  [[nodiscard]] std::vector<SquaredNorm> squared_norms(double weight) const;

  /// One optimizer update, which turns the sums into what it applies while it reads them (OR-2).
  /// `step` counts from 1.
  void update(double learning_rate, const GradientScale& scale, std::int64_t step);

  /// Parameters first (kWeight), then the optimizer's state; the living tensors.
  [[nodiscard]] std::vector<NamedTensor> state() const;

  /// The gradients of all trained parameters, one buffer per dtype; copies of a stage have equal
  /// ones.
  [[nodiscard]] const std::vector<at::Tensor>& flat_gradients() const { return flat_gradients_; }

  /// Gradients of the parameters that it updates, by their names: as averaged for the last update,
  /// where they are kept; else the living ones, which an update averages and clips.
  [[nodiscard]] std::vector<NamedTensor> gradients() const;

  /// The living one of a parameter. Requires: it trains.
  [[nodiscard]] at::Tensor gradient(std::string_view parameter) const;

 private:
  std::vector<std::string> names_;                      // of all parameters
  std::vector<at::Tensor> parameters_;                  // likewise
  std::vector<std::optional<std::int64_t>> positions_;  // of the trained ones that are counted here
  std::vector<std::string> trained_names_;
  std::vector<at::Tensor> gradients_;          // of the trained ones
  std::vector<OptimizedParameter> optimized_;  // of these, all that are not frozen
  Optimizer optimizer_;
  std::vector<std::string> state_names_;
  std::vector<at::Tensor> flat_gradients_;  // one per dtype
  std::vector<at::Tensor> kept_;            // like the gradients of the optimized ones, or empty
  std::vector<torch::autograd::Edge> gradient_edges_;
  std::shared_ptr<GradientSums> sums_;  // in the views above; shared by those of other shapes
};

}  // namespace stagecraft
