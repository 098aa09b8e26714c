#include "stagecraft/actors/trainer/fit.h"

#include <chrono>
#include <deque>
#include <exception>
#include <iostream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/data/prefetch.h"
#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/trainer/fit_progress.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/actors/trainer/validation_watch.h"
#include "stagecraft/base/count_text.h"
#include "stagecraft/base/files/whole_file.h"
#include "stagecraft/compiler/libtorch/random.h"
#include "stagecraft/compiler/shapes/sample_rows.h"

namespace stagecraft {
namespace {

void require(bool good, const std::string& what) {
  if (!good) {
    throw Error(Errc::UsageArgument, "fit: " + what);
  }
}

void check(const FitOptions& options) {
  require(options.epochs >= 1, fmt::format("epochs is at least 1, not {}", options.epochs));
  require(!options.max_steps || *options.max_steps >= 1,
          fmt::format("max_steps is at least 1, not {}", options.max_steps.value_or(0)));
  require(!options.max_time || options.max_time->count() > 0,
          fmt::format("max_time is above 0, not {} ms",
                      options.max_time.value_or(std::chrono::milliseconds()).count()));
  require(options.accumulate >= 1,
          fmt::format("accumulate is at least 1 batch per update, not {}", options.accumulate));
  require(options.prefetch >= 0,
          fmt::format("prefetch is a number of batches from 0 on, not {}", options.prefetch));
  check_validation(options.validation);
  if (!options.validation.best_path.empty()) {
    const WholeFile tried(options.validation.best_path);  // not only after the first evaluation
  }
}

/// Returns where the loop begins, and sets LibTorch's generator back to the beginning of that
/// epoch. Waits for the steps in progress.
LoopState start_of(const Trainer& trainer, const FitOptions& options) {
  std::optional<LoopState> found = trainer.loop_state();
  if (!options.resume || (!found && trainer.steps() == 0)) {
    return {};
  }
  require(
      found.has_value(),
      fmt::format("resume needs a checkpoint that was saved while fit() ran, and the state after "
                  "step {} has no place in a loader: leave resume out, or load another",
                  trainer.steps()));
  require(found->epoch <= options.epochs,
          fmt::format("resume continues in epoch {}, and epochs is {}: give at least as many",
                      found->epoch,
                      options.epochs));
  if (!found->random.empty()) {
    set_default_random_state(found->random);
  }
  begin_to_watch(*found, options.validation);
  return *std::move(found);
}

/// A mean weighted by samples; without a sample count, each value counts once.
struct Mean {
  double sum = 0.0, weight = 0.0;

  void add(double value, std::int64_t samples) {
    const double by = samples > 0 ? static_cast<double>(samples) : 1.0;
    sum += value * by;
    weight += by;
  }
  [[nodiscard]] double value() const { return weight > 0.0 ? sum / weight : 0.0; }
};

class Fit {
 public:
  Fit(Trainer& trainer, BatchSource& source, const FitOptions& options)
      : trainer_(trainer),
        options_(options),
        state_(start_of(trainer, options)),
        entered_(trainer.steps()),
        epoch_(state_.epoch),
        watch_(trainer, options.validation, state_),
        batches_(source, options.epochs - state_.epoch + 1, options.prefetch),
        progress_(options.progress, options.epochs) {}

  FitResult run() {
    try {
      evaluate_if_left_out();
      for (std::int64_t skipped = state_.batches; epoch_ <= options_.epochs && may_go_on();
           ++epoch_, skipped = 0) {
        run_epoch(skipped);
      }
      tell_all();
      if (result_.steps > 0 || options_.resume) {  // the run before may not have come to it
        evaluate_once();
      }
    } catch (...) {
      settle();
      throw;
    }
    finish_update();
    result_.end = end_.value_or(FitEnd::Epochs);
    result_.best = watch_.best();
    result_.seconds = seconds();
    return std::move(result_);
  }

 private:
  /// An update whose last batch was given to the trainer.
  struct Update {
    StepFuture result;
    std::int64_t epoch = 1, batches = 0, samples = 0;
    bool ends_epoch = false;
  };

  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun_).count();
  }

  /// Returns whether another update may begin.
  bool may_go_on() {
    if (!end_ && options_.max_steps && entered_ >= *options_.max_steps) {
      end_ = FitEnd::MaxSteps;
    }
    if (!end_ && options_.max_time &&
        std::chrono::steady_clock::now() - begun_ >= *options_.max_time) {
      end_ = FitEnd::MaxTime;
    }
    return !end_;
  }

  /// `skipped`: the first batches of the epoch, on which the run before has trained.
  void run_epoch(std::int64_t skipped) {
    set_rate();
    number_ = 0;
    std::optional<LabeledBatch> batch = load();
    if (!batch && skipped == 0) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("fit: the loader has no batch in epoch {}: {}",
                      epoch_,
                      epoch_ == 1 ? "give it data, or a smaller batch size"
                                  : "a loader that can be read only once needs .epochs = 1"));
    }
    full_ = batch ? sample_rows(batch->inputs) : 0;
    for (; batch && number_ < skipped; ++number_) {
      batch = load();
    }
    require(number_ == skipped,
            fmt::format("the loader has {} in epoch {}, and the checkpoint was made after batch "
                        "{}: give fit() the loader of that run",
                        count_text(number_, "batch"),
                        epoch_,
                        skipped));
    if (!batch) {
      end_epoch();
    }
    while (batch && (parts_.batches > 0 ? !end_ : may_go_on())) {
      ++number_;
      batch = train_on(*batch);
    }
    if (!batch) {
      ++result_.epochs;
    }
  }

  /// Trains on the batch and returns the next one. Asks for the next one before the step only if it
  /// decides something.
  std::optional<LabeledBatch> train_on(const LabeledBatch& batch) {
    const bool fills = parts_.batches + 1 == options_.accumulate;
    std::optional<LabeledBatch> next;
    bool last = false;
    if (!fills || options_.drop_last) {
      next = load();
      last = !next;
    }
    const bool dropped =
        last && options_.drop_last && (sample_rows(batch.inputs) < full_ || !fills);
    if (dropped) {
      trainer_.drop_accumulated();
      parts_ = {};
    } else {
      enter(batch, fills || last);
    }
    if (end_ == FitEnd::OnStep) {
      return batch;
    }
    if (fills && !options_.drop_last) {
      next = load();
      last = !next;
    }
    if (last) {
      end_epoch();
    }
    return next;
  }

  void enter(const LabeledBatch& batch, bool updates) {
    while (std::ssize(under_way_) >= trainer_.options().outstanding) {
      tell_oldest();
    }
    if (end_) {
      return;
    }
    parts_.samples += sample_rows(batch.inputs);
    ++parts_.batches;
    try {
      parts_.result = updates ? trainer_.step(batch.inputs, batch.labels)
                              : trainer_.accumulate(batch.inputs, batch.labels);
    } catch (const Error& error) {
      Error told(error.code(),
                 fmt::format("epoch {}, batch {}: {}", epoch_, number_, error.text()));
      throw told.about(error.option()).advise(error.advice()).with(error.context());
    }
    if (updates) {
      parts_.epoch = epoch_;
      under_way_.push_back(std::exchange(parts_, {}));
      ++entered_;
      state_.epoch = epoch_;
      state_.batches = number_;
      state_.random = *batches_.random();
      trainer_.set_loop_state(entered_, state_);
    }
    while (!under_way_.empty() && under_way_.front().result.ready()) {
      tell_oldest();
    }
    if (updates && watch_.is_due(entered_)) {
      tell_all();
      evaluate_once();
    }
  }

  void end_epoch() {
    if (watch_.evaluates() && options_.validation.every == 0) {
      tell_all();
      evaluate_once();
    }
    if (under_way_.empty()) {
      progress_.end_epoch();
    } else {
      under_way_.back().ends_epoch = true;
    }
  }

  /// A checkpoint may have been made, by on_step, between a step and its evaluation, or after the
  /// evaluation that ended the loop.
  void evaluate_if_left_out() {
    if (options_.resume && watch_.is_due(entered_)) {
      evaluate_once();
    }
    end_if_out_of_patience();
  }

  void end_if_out_of_patience() {
    if (!end_ && watch_.is_out_of_patience()) {
      end_ = FitEnd::Patience;
    }
  }

  /// Evaluates the present weights, unless that was done or on_step has ended the loop. Requires:
  /// no step is in progress.
  void evaluate_once() {
    if (end_ == FitEnd::OnStep) {
      return;
    }
    const std::optional<FitEvaluation> found = watch_.evaluate(entered_);
    if (!found) {
      return;
    }
    const Validation& validation = options_.validation;
    set_rate();
    progress_.evaluated(validation.watch, found->watched);
    if (validation.on_evaluation) {
      validation.on_evaluation(*found);
    }
    end_if_out_of_patience();
  }

  [[nodiscard]] bool changes_rates() const {
    return options_.rate_of_epoch || options_.validation.plateau;
  }

  void set_rate() {
    if (!changes_rates() || epoch_ > options_.epochs) {  // after the last epoch no update follows
      return;
    }
    double factor = options_.validation.plateau ? state_.watch.rate_factor : 1.0;
    if (options_.rate_of_epoch) {
      const double of_epoch = options_.rate_of_epoch(epoch_);
      check_rate(of_epoch, "the factor that rate_of_epoch returns");
      factor *= of_epoch;
    }
    trainer_.scale_learning_rate(factor);
  }

  std::optional<LabeledBatch> load() {
    try {
      return batches_.next();
    } catch (...) {
      const Error cause = foreign_error(std::current_exception());
      tell_all();  // first report the batches that were given to the trainer: they were trained on
      Error told(
          Errc::UsageArgument,
          fmt::format("fit: the loader threw in epoch {}, after batch {}: repair it, or leave "
                      "out what it cannot load",
                      epoch_,
                      number_));
      throw told.because(cause);
    }
  }

  void tell_oldest() {
    const Update update = under_way_.front();
    FitStep step{update.result.get(), update.epoch, update.batches, update.samples};
    under_way_.pop_front();
    if (update.epoch != told_epoch_) {
      told_epoch_ = update.epoch;
      result_.epoch_losses.emplace_back();
      mean_ = {};
    }
    mean_.add(step.mean_loss, step.samples);
    result_.epoch_losses.back() = mean_.value();
    result_.last_loss = step.mean_loss;
    result_.samples += step.samples;
    ++result_.steps;
    progress_.step(update.epoch, step.step, mean_.value(), result_.steps);
    if (update.ends_epoch) {
      progress_.end_epoch();
    }
    if (!options_.on_step.tell(step)) {
      end_ = FitEnd::OnStep;
    }
  }

  void tell_all() {
    while (!under_way_.empty()) {
      tell_oldest();
    }
  }

  /// Keeps FI-2, also for steps of an evaluation that threw: each ends by its deadline.
  void settle() {
    (void)trainer_.loop_state();  // waits for the steps in progress
    finish_update();
  }

  void finish_update() {
    trainer_.drop_accumulated();
    if (changes_rates()) {
      trainer_.scale_learning_rate(1.0);
    }
  }

  Trainer& trainer_;
  const FitOptions& options_;
  const std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
  FitResult result_;
  std::optional<FitEnd> end_;
  LoopState state_;           // after the updates that were given to the trainer
  std::int64_t entered_ = 0;  // these updates, and those before this call
  std::deque<Update> under_way_;
  Update parts_;  // the update that collects batches now
  std::int64_t epoch_ = 1;
  std::int64_t told_epoch_ = 0;
  std::int64_t number_ = 0;  // of the batch in the epoch
  std::int64_t full_ = 0;    // samples of the epoch's first batch
  Mean mean_;                // loss of the epoch that is reported now
  ValidationWatch watch_;
  Prefetch batches_;
  FitProgress progress_;
};

}  // namespace

std::ostream* standard_error() {
  return &std::cerr;
}

FitResult run_fit(Trainer& trainer, BatchSource& source, const FitOptions& options) {
  check(options);
  return Fit(trainer, source, options).run();
}

}  // namespace stagecraft
