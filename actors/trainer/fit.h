/// fit is the loop of a trainer over a loader: epochs, batches, steps, evaluations (validation.h),
/// and progress reports.
///
///   trainer.fit(*loader, {.epochs = 3, .on_step = [](const sc::FitStep& s) { ... }});
///
/// The caller's thread makes the steps and runs the callbacks; another thread reads the loader
/// (prefetch.h).
/// FI-1: on_step and the progress line report every step that was made, once, in order. Steps
///       after a failure are finished, but not reported.
/// FI-2: when fit() returns or throws, no step is in progress, nothing is accumulated and no thread
///       reads the loader.
/// FI-3: fit() with `resume`, after a checkpoint made while fit() ran was loaded, makes the steps
///       that the unbroken run made: the loader must repeat an epoch if LibTorch's default
///       generator does.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/driver/step_result.h"
#include "stagecraft/actors/trainer/validation.h"

namespace stagecraft {

class Trainer;

/// FitStep is the result of one update, of one batch or of FitOptions::accumulate batches.
struct FitStep : StepResult {
  std::int64_t epoch = 1;    ///< counted from 1
  std::int64_t batches = 1;  ///< of which it was made
  std::int64_t samples = 0;  ///< rows of the first input of these batches
};

/// OnStep wraps any callable of a FitStep or of a StepResult. If the callable returns a bool, false
/// ends the loop: fit() begins no further step, and reports those in progress.
class OnStep {
 public:
  OnStep() = default;
  template <class F>
  requires std::invocable<F&, const FitStep&> OnStep(
      F call)  // NOLINT(google-explicit-constructor): options are written with a lambda
      : call_([call = std::move(call)](const FitStep& step) mutable {
          using Answer = std::invoke_result_t<F&, const FitStep&>;
          static_assert(std::is_void_v<Answer> || std::same_as<Answer, bool>,
                        "on_step returns nothing, or a bool: false ends the loop");
          if constexpr (std::is_void_v<Answer>) {
            call(step);
            return true;
          } else {
            return call(step);
          }
        }) {}

  /// Returns whether to continue.
  [[nodiscard]] bool tell(const FitStep& step) const { return !call_ || call_(step); }

 private:
  std::function<bool(const FitStep&)> call_;
};

/// Returns &std::cerr.
[[nodiscard]] std::ostream* standard_error();

struct FitOptions {
  std::int64_t epochs = 1;  ///< how often the loader is read from its beginning
  /// Ends the loop when Trainer::steps() is this. Like a rate's total_steps it counts the updates
  /// before this call.
  std::optional<std::int64_t> max_steps;
  std::optional<std::chrono::milliseconds> max_time;  ///< begins no update after it, in this call
  OnStep on_step;
  int accumulate = 1;  ///< batches per update; the last update of an epoch may have fewer
  /// Leaves out the last batch of an epoch if it has fewer samples than the first one, and the last
  /// update of an epoch if it has fewer batches than the others.
  bool drop_last = false;
  int prefetch = 2;  ///< batches loaded before they are needed; 0: load on the caller's thread
  Validation validation;
  /// Returns the factor of the rates in an epoch, counted from 1. None: 1.
  std::function<double(std::int64_t epoch)> rate_of_epoch;
  /// Continues at the place of the checkpoint that was loaded (FI-3): reads the epoch's batches
  /// before it without training on them. `epochs` counts those before. On a trainer without a step,
  /// begins at the beginning, so that one program begins and continues.
  bool resume = false;
  /// The stream of the progress: one line that is overwritten on a terminal, elsewhere a line per
  /// epoch. Null: none.
  std::ostream* progress = standard_error();
};

/// FitEnd says why the loop ended.
enum class FitEnd : std::uint8_t { Epochs, OnStep, MaxSteps, MaxTime, Patience };

/// FitBest is the best evaluation of a loop and of the one that it continues.
struct FitBest {
  double value = 0.0;     ///< of the watched metric
  std::int64_t step = 0;  ///< updates made before it
  /// Validation::best_path; empty if the file there does not hold the best state, as after a run
  /// that continues elsewhere and finds no better one.
  std::string path;
};

struct FitResult {
  std::int64_t epochs = 0;           ///< epochs read to their end
  std::int64_t steps = 0;            ///< updates that this call made
  std::int64_t samples = 0;          ///< of which these were made
  std::vector<double> epoch_losses;  ///< for each epoch begun: mean over its samples
  double last_loss = 0.0;            ///< mean loss of the last step
  double seconds = 0.0;
  FitEnd end = FitEnd::Epochs;
  std::optional<FitBest> best;  ///< none without an evaluation
};

/// Runs the loop.
/// Errors: UsageArgument for options that make no sense or contradict each other, for an epoch
/// without a batch, for `resume` without a place, and for an exception of the loader, with the
/// batch's place in front; those of Trainer::step, StepFuture::get and Trainer::evaluate; UsageFile
/// if the best state cannot be saved; exceptions of functions in the options, unchanged.
FitResult run_fit(Trainer& trainer, BatchSource& source, const FitOptions& options);

}  // namespace stagecraft
