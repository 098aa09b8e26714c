/// Reference: one process, no pipeline, the same arithmetic. What a pipelined run is compared with.
///
/// Replays the stages of a program one after the other as a single autograd graph, microbatch by
/// microbatch, and shares everything else with the executor: buckets, averaging, vote, clipping,
/// optimizer. Its steps run on a thread of their own, with the thread count a worker would have.
///
/// RE-1: values cross the boundary of a stage through an identity whose gradient is contiguous, as
///       on the wire. A parameter of several stages is a leaf of its own in each, and the parts of
///       its gradient are added as on their ranks (TY-1). Chunks have no boundary here (CB-1), and
///       nothing is recomputed.
/// RE-2: of a program with sizes of microbatches (resize.h) each stage runs its own (sized_pass.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/executor/learning_rate.h"
#include "stagecraft/actors/executor/optimizer.h"
#include "stagecraft/actors/executor/parameter_groups.h"
#include "stagecraft/actors/executor/stage_executor.h"
#include "stagecraft/compiler/batch.h"
#include "stagecraft/compiler/program.h"

namespace stagecraft {

struct ReferenceOptions {
  LearningRate learning_rate;
  std::vector<ParameterGroup> groups;
  DecayOn decay_on = DecayOn::All;
  std::optional<double> clip;
  bool keep_gradients = false;        ///< for gradients(), where clipping changes them
  std::optional<std::uint64_t> seed;  ///< none: as TrainerOptions::seed
  int threads = 1;
};

struct ReferenceStep {
  std::vector<double> losses;  ///< per microbatch
  double mean_loss = 0.0;      ///< weighted by samples (PT-2)
  double gradient_norm = 0.0;
  double learning_rate = 0.0;  ///< of parameters without a group's own
};

class Reference {
 public:
  Reference(Program program, Optimizer optimizer, ReferenceOptions options);
  ~Reference();
  Reference(const Reference&) = delete;
  Reference& operator=(const Reference&) = delete;

  /// One optimizer update, with what was accumulated for it.
  /// Errors: as Trainer::step and StepFuture::get together; then that is dropped.
  ReferenceStep step(const Batch& inputs, const Batch& labels);

  /// As Trainer::accumulate.
  ReferenceStep accumulate(const Batch& inputs, const Batch& labels);

  /// Weights, optimizer state and buffers, named as in checkpoints; the living tensors. What
  /// several stages have comes once for each.
  [[nodiscard]] std::vector<StateTensor> state() const;

  /// Averaged gradients of the last step by parameter name, before clipping, without those of
  /// frozen parameters; likewise.
  /// Errors: UsageArgument where steps are clipped and no gradients are kept.
  [[nodiscard]] std::vector<StateTensor> gradients() const;

  /// Updates done so far; set it together with the state to go on from a checkpoint.
  [[nodiscard]] std::int64_t steps() const;
  void set_steps(std::int64_t steps);

  /// As Trainer::set_learning_rate.
  void set_learning_rate(std::optional<double> rate);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace stagecraft
