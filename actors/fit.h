/// fit: a trainer's loop over a loader: epochs, batches, steps, and what is told of them.
///
///   trainer.fit(*loader, {.epochs = 3, .on_step = [](const sc::FitStep& s) { ... }});
///
/// Called on the caller's thread, which makes the steps and is told of them; the loader is read on
/// another (prefetch.h).
/// FI-1: on_step and the progress line are told of every step that was made, once, in order. What
///       comes behind a failure is finished, and not told.
/// FI-2: when fit() returns or throws, no step is under way, nothing is accumulated and no thread
///       reads the loader.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <type_traits>
#include <utility>
#include <vector>

#include "stagecraft/actors/batch_source.h"
#include "stagecraft/actors/step_result.h"

namespace stagecraft {

class Trainer;

/// What came of one update, of one batch or of FitOptions::accumulate.
struct FitStep : StepResult {
  std::int64_t epoch = 1;    ///< counted from 1
  std::int64_t batches = 1;  ///< that it was made of
  std::int64_t samples = 0;  ///< rows of the first input of these
};

/// Any callable of a FitStep, or of a StepResult. One that returns a bool ends the loop by false:
/// no further step is begun, and it is told of those that are under way.
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

  /// Whether to go on.
  [[nodiscard]] bool tell(const FitStep& step) const { return !call_ || call_(step); }

 private:
  std::function<bool(const FitStep&)> call_;
};

/// std::cerr.
[[nodiscard]] std::ostream* standard_error();

struct FitOptions {
  std::int64_t epochs = 1;  ///< the loader is read so often from its beginning
  OnStep on_step;
  int accumulate = 1;  ///< batches per update; the last update of an epoch may have fewer
  /// Leaves out the last batch of an epoch where it has fewer samples than the first one, and its
  /// last update where that has fewer batches than the others.
  bool drop_last = false;
  int prefetch = 2;  ///< batches loaded before they are needed; 0: on the caller's thread
  /// Where progress is told: one line that is overwritten where this is a terminal, else a line per
  /// epoch. Null: nowhere.
  std::ostream* progress = standard_error();
};

struct FitResult {
  std::int64_t epochs = 0;           ///< that were read to their end
  std::int64_t steps = 0;            ///< updates that this call made
  std::int64_t samples = 0;          ///< that these were made of
  std::vector<double> epoch_losses;  ///< of each epoch begun: mean over its samples
  double last_loss = 0.0;            ///< mean loss of the last step
  double seconds = 0.0;
  bool stopped = false;  ///< by on_step
};

/// Errors: UsageArgument for options that make no sense, for an epoch without a batch, and, with
///         the batch's place in front, for what the loader throws; those of Trainer::step and
///         StepFuture::get; what on_step throws, as it is.
FitResult run_fit(Trainer& trainer, BatchSource& source, const FitOptions& options);

}  // namespace stagecraft
