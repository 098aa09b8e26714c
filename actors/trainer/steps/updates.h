/// Updates trains on batches, in updates of one or more batches.
///
/// A Trainer owns it and uses it on its caller's thread. It numbers updates and their batches, so
/// that the driver knows which batches belong together (UU-1).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "stagecraft/actors/executor/optimizer/group_updates.h"
#include "stagecraft/actors/executor/step/local_batch.h"
#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/actors/trainer/steps/step_entry.h"
#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/program/program.h"

namespace stagecraft {

class Updates {
 public:
  /// Views `entry`. `program`: laid out for the schedule. `loss_weight`: of the options.
  Updates(StepEntry& entry, Program program, LossWeight loss_weight)
      : entry_(entry), program_(std::move(program)), loss_weight_(std::move(loss_weight)) {}

  /// Trains on a batch. `updates`: it is the last batch of its update.
  /// Errors: those of Trainer::step. A batch that is refused belongs to no update.
  [[nodiscard]] StepFuture train_on(const Batch& inputs, const Batch& labels, bool updates);
  [[nodiscard]] StepFuture train_on(const LocalBatch& batch, bool updates);

  /// Begins another update: drops the batches of the one that has no last batch yet.
  void begin();

  /// Replaces the rate of the options for the batches to come.
  void set_rate(std::optional<double> rate) { rate_ = rate; }
  /// Multiplies either, likewise.
  void set_rate_factor(double factor) { rate_factor_ = factor; }
  /// Replaces the largest norm of the gradient, likewise.
  void set_clip(std::optional<double> clip) { clip_ = clip; }
  /// Freezes a group, by its number, or lets it train, likewise.
  void set_frozen(std::size_t group, std::optional<bool> frozen) {
    frozen_.resize(std::max(frozen_.size(), group + 1));
    frozen_[group] = frozen;
  }

 private:
  [[nodiscard]] StepFuture enter(Parts parts, const LocalBatch& local, bool updates);
  [[nodiscard]] double weigh(Parts& parts);

  StepEntry& entry_;
  const Program program_;
  const LossWeight loss_weight_;
  std::optional<double> rate_, clip_;
  GroupFreezes frozen_;
  double rate_factor_ = 1.0;
  std::int64_t number_ = 0;         // of the update in progress
  std::int32_t batches_ = 0;        // that it has
  std::int64_t first_samples_ = 1;  // of its first part
  double loss_unit_ = 1.0;          // what that part counts (LM-1)
};

}  // namespace stagecraft
