/// Validation says on which data fit() evaluates while it trains, and what follows from the result:
/// the best state is saved, the learning rate falls on a plateau, training ends early.
///
///   trainer.fit(loader, {.epochs = 50,
///                        .validation = {.data = test_set,
///                                       .metrics = {{"accuracy", sc::accuracy}},
///                                       .watch = "accuracy",
///                                       .goal = sc::Goal::Max,
///                                       .patience = 5,
///                                       .best_path = "best.ckpt"}});
///
/// FV-1: one metric is watched. Its best value is the best of all evaluations. An improvement is a
///       value that surpasses the last improvement by more than min_delta; patience counts the
///       evaluations since. A value that is not a number is neither.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/trainer/state/loop_state.h"
#include "stagecraft/actors/trainer/steps/evaluation.h"
#include "stagecraft/compiler/module/metric.h"

namespace stagecraft {

/// Plateau lowers the learning rate when the watched metric no longer improves: after every
/// `patience` evaluations in a row without an improvement, all rates are multiplied by `factor`.
struct Plateau {
  double factor = 0.1;  ///< above 0 and below 1
  int patience = 10;    ///< at least 1
  double least = 0.0;   ///< the product of all factors stays at least this; below 1
};

/// ValidationData views a loader, which must outlive it: any that fit() takes. It is read from its
/// beginning for each evaluation, on the thread of fit().
class ValidationData {
 public:
  ValidationData() = default;
  template <class Loader>
  requires(!std::same_as<std::remove_cv_t<Loader>, ValidationData>) ValidationData(
      Loader& loader)  // NOLINT(google-explicit-constructor): options are written with a loader
      : source_(std::make_shared<internal::RangeSource<
                    std::remove_reference_t<decltype(internal::range_of(loader))>>>(
            internal::range_of(loader))) {}

  /// Returns null if there are none.
  [[nodiscard]] BatchSource* source() const { return source_.get(); }

 private:
  std::shared_ptr<BatchSource> source_;
};

/// FitEvaluation is an evaluation that fit() made.
struct FitEvaluation : Evaluation {
  std::int64_t step = 0, epoch = 1;  ///< updates made, and the epoch, counted from 1
  double watched = 0.0;              ///< value of the watched metric
  bool is_best = false;              ///< better than all before; the state is saved
  bool improved = false;             ///< by more than min_delta
  double rate_factor = 1.0;          ///< of the plateau, from now on
};

struct Validation {
  ValidationData data;          ///< none: fit() evaluates nothing, and nothing else may be set
  std::vector<Metric> metrics;  ///< beside the loss
  /// Evaluates when Trainer::steps() is a multiple of this; 0: at the end of each epoch. Also after
  /// the last update, unless on_step ended the loop.
  std::int64_t every = 0;
  std::string watch = "loss";  ///< the watched metric: "loss", or one of `metrics`, a single number
  Goal goal = Goal::Min;
  double min_delta = 0.0;       ///< FV-1
  std::optional<int> patience;  ///< ends the loop after so many evaluations without improvement
  std::optional<Plateau> plateau;
  /// Checkpoint of the best state, written when it is found; empty: none. In the folder of a
  /// CheckpointFolder, a file NAME.ckpt that a killed run has left unfinished is removed (CS-4).
  std::string best_path;
  std::function<void(const FitEvaluation&)> on_evaluation;  ///< called after each, on your thread
};

/// Errors: UsageArgument for options that contradict each other.
void check_validation(const Validation& validation);

/// Returns the value of the watched metric. Errors: UsageArgument if it is not one number.
[[nodiscard]] double watched_value(const Validation& validation, const Evaluation& found);

/// Returns the state if its values are of the watched metric and were judged by its goal; else one
/// that keeps only the factor of the rates, which stay as low as they are.
[[nodiscard]] WatchState for_metric_of(const Validation& validation, const WatchState& state);

/// Returns the state after an evaluation, `steps` updates after the start, has found `value`. It
/// continues `before` as for_metric_of() does.
[[nodiscard]] WatchState after(const WatchState& before,
                               double value,
                               std::int64_t steps,
                               const Validation& validation);

}  // namespace stagecraft
