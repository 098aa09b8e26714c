/// ValidationWatch evaluates for fit(), keeps what the evaluations have shown of the watched
/// metric, and saves the best state.
///
/// The loop of fit() has one, on its thread, and decides what follows from an evaluation. Both
/// write to the LoopState: the loop its place in the data, this class the rest.
#pragma once

#include <cstdint>
#include <optional>

#include "stagecraft/actors/trainer/best_checkpoint.h"
#include "stagecraft/actors/trainer/fit.h"
#include "stagecraft/actors/trainer/state/loop_state.h"
#include "stagecraft/actors/trainer/validation.h"

namespace stagecraft {

/// Forgets what evaluations have shown of another metric: its values say nothing of this one.
void begin_to_watch(LoopState& state, const Validation& validation);

class ValidationWatch {
 public:
  /// Views all arguments.
  ValidationWatch(Trainer& trainer, const Validation& validation, LoopState& state);

  /// Returns whether there are data to evaluate.
  [[nodiscard]] bool evaluates() const { return validation_.data.source() != nullptr; }

  /// Returns whether Validation::every asks for an evaluation after so many updates.
  [[nodiscard]] bool is_due(std::int64_t steps) const;

  /// Evaluates the present weights, after so many updates; returns nothing if that was done. Tells
  /// the trainer the state of the loop. If the best state cannot be saved, that state is the one
  /// before the evaluation again, so that a run that continues evaluates and saves again.
  /// Requires: no step is in progress.
  /// Errors: those of Trainer::evaluate and Trainer::save; UsageArgument as watched_value.
  [[nodiscard]] std::optional<FitEvaluation> evaluate(std::int64_t steps);

  [[nodiscard]] bool is_out_of_patience() const;

  /// Returns the best evaluation, also of the run before. None without an evaluation.
  [[nodiscard]] std::optional<FitBest> best() const;

 private:
  void save_best(std::int64_t steps, const LoopState& before);

  Trainer& trainer_;
  const Validation& validation_;
  LoopState& state_;
  BestCheckpoint file_;
};

}  // namespace stagecraft
