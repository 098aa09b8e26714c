/// Reference trains in one process, without a pipeline, with the same arithmetic. A pipelined run
/// is compared with it.
///
/// It runs the stages of a program one after the other as a single autograd graph, microbatch by
/// microbatch, and shares everything else with the executor: buckets, averaging, vote, clipping,
/// optimizer. Its steps run on a thread of their own, with the thread count of a worker.
///
/// RE-1: values cross the boundary of a stage through an identity whose gradient is contiguous, as
///       on the wire. A parameter of several stages is a separate leaf in each, and the parts of
///       its gradient are added as on their ranks (TY-1). Chunks have no boundary here (CB-1), and
///       nothing is recomputed.
/// RE-3: with the order of sums of a plan (ReferenceOptions::sums), gradients have the bits of that
///       plan's ranks, if one order of microbatches fits all its stages. Microbatches then run in
///       that order.
/// RE-2: in a program with sizes of microbatches (resize.h), each stage runs its own
///       (sized_pass.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/optimizer/parameter_groups.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/actors/executor/step/loss_scale.h"
#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/actors/reference/sum_order.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

struct ReferenceOptions {
  LearningRate learning_rate;
  std::vector<ParameterGroup> groups;
  DecayOn decay_on = DecayOn::All;
  std::optional<double> clip, clip_value, average;
  bool master_weights = false;  ///< as TrainerOptions::master_weights
  std::optional<LossScaling> loss_scaling;
  bool keep_gradients = false;        ///< for gradients(), if clipping changes them
  std::optional<std::uint64_t> seed;  ///< none: as TrainerOptions::seed
  int threads = 1;
  /// The plan whose ranks' order of additions it follows. Null: microbatch after microbatch.
  std::shared_ptr<const SumOrder> sums;
  LossWeight loss_weight;  ///< as TrainerOptions::loss_weight
};

struct ReferenceStep {
  std::vector<double> losses;  ///< per microbatch
  double mean_loss = 0.0;      ///< by the weights of the microbatches (PT-2)
  Counts counts;               ///< of the whole update (count.h); empty before its last batch
  double gradient_norm = 0.0;
  bool skipped = false;        ///< as StepResult's
  double learning_rate = 0.0;  ///< of parameters whose group has none of its own
};

class Reference {
 public:
  Reference(Program program, Optimizer optimizer, ReferenceOptions options);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// Makes one optimizer update, together with the accumulated batches.
  /// Errors: those of Trainer::step and StepFuture::get; the accumulated batches are then dropped.
  ReferenceStep step(const Batch& inputs, const Batch& labels);

  /// Works like Trainer::accumulate.
  ReferenceStep accumulate(const Batch& inputs, const Batch& labels);

  /// Returns weights, optimizer state and buffers, named as in checkpoints; the living tensors. A
  /// tensor of several stages occurs once for each.
  [[nodiscard]] std::vector<StateTensor> state() const;

  /// Returns the averaged gradients of the last step by parameter name, before clipping, without
  /// those of frozen parameters; living tensors, too.
  /// Errors: UsageArgument if steps are clipped and no gradients are kept.
  [[nodiscard]] std::vector<StateTensor> gradients() const;

  /// Returns the updates done so far; set it together with the state to continue from a checkpoint.
  [[nodiscard]] std::int64_t steps() const;
  void set_steps(std::int64_t steps,
                 const std::optional<LossScale>& scale = std::nullopt,
                 const std::optional<FrozenUpdates>& frozen = std::nullopt);

  /// Works like Trainer::set_learning_rate.
  void set_learning_rate(std::optional<double> rate);
  /// Works like Trainer::scale_learning_rate.
  void scale_learning_rate(double factor);

  /// Works like Trainer::set_clip.
  void set_clip(std::optional<double> norm);
  /// Works like Trainer::set_frozen.
  void set_frozen(std::string_view group, std::optional<bool> frozen);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
