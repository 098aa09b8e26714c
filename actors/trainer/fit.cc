#include "stagecraft/actors/trainer/fit.h"

#include <chrono>
#include <deque>
#include <exception>
#include <iostream>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/data/prefetch.h"
#include "stagecraft/actors/executor/step/foreign_error.h"
#include "stagecraft/actors/trainer/fit_progress.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/shapes/sample_rows.h"

namespace stagecraft {
namespace {

void check(const FitOptions& options) {
  const auto require = [](bool good, const std::string& what) {
    if (!good) {
      throw Error(Errc::UsageArgument, "fit: " + what);
    }
  };
  require(options.epochs >= 1, fmt::format("epochs is at least 1, not {}", options.epochs));
  require(options.accumulate >= 1,
          fmt::format("accumulate is at least 1 batch per update, not {}", options.accumulate));
  require(options.prefetch >= 0,
          fmt::format("prefetch is a number of batches from 0 on, not {}", options.prefetch));
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
        batches_(source, options.epochs, options.prefetch),
        progress_(options.progress, options.epochs) {}

  FitResult run() {
    const auto begun = std::chrono::steady_clock::now();
    try {
      for (epoch_ = 1; epoch_ <= options_.epochs && going_on_; ++epoch_) {
        run_epoch();
      }
      while (!under_way_.empty()) {
        tell_oldest();
      }
    } catch (...) {
      settle();
      throw;
    }
    trainer_.drop_accumulated();
    result_.stopped = !going_on_;
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    return std::move(result_);
  }

 private:
  /// An update whose last batch was given to the trainer.
  struct Update {
    StepFuture result;
    std::int64_t epoch = 1, batches = 0, samples = 0;
    bool ends_epoch = false;
  };

  void run_epoch() {
    number_ = 0;
    std::optional<LabeledBatch> batch = load();
    if (!batch) {
      throw Error(
          Errc::UsageArgument,
          fmt::format("fit: the loader has no batch in epoch {}: {}",
                      epoch_,
                      epoch_ == 1 ? "give it data, or a smaller batch size"
                                  : "a loader that can be read only once needs .epochs = 1"));
    }
    full_ = sample_rows(batch->inputs);
    while (batch && going_on_) {
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
    if (!going_on_) {
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
    if (!going_on_) {
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
    newest_ = parts_.result;
    if (updates) {
      parts_.epoch = epoch_;
      under_way_.push_back(std::exchange(parts_, {}));
    }
    while (!under_way_.empty() && under_way_.front().result.ready()) {
      tell_oldest();
    }
  }

  void end_epoch() {
    if (under_way_.empty()) {
      progress_.end_epoch();
    } else {
      under_way_.back().ends_epoch = true;
    }
  }

  std::optional<LabeledBatch> load() {
    try {
      return batches_.next();
    } catch (...) {
      const Error cause = foreign_error(std::current_exception());
      // First report the batches that were given to the trainer: they were trained on.
      while (!under_way_.empty()) {
        tell_oldest();
      }
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
    if (result_.epoch_losses.size() < static_cast<std::size_t>(update.epoch)) {
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
    going_on_ = options_.on_step.tell(step) && going_on_;
  }

  /// Keeps FI-2: steps run one after the other, and each ends by its deadline.
  void settle() {
    if (newest_.valid()) {
      (void)newest_.wait_until(Deadline::max());
    }
    trainer_.drop_accumulated();
  }

  Trainer& trainer_;
  const FitOptions& options_;
  FitResult result_;
  std::deque<Update> under_way_;
  Update parts_;       // the update that collects batches now
  StepFuture newest_;  // of the batch given last
  std::int64_t epoch_ = 1;
  std::int64_t number_ = 0;  // of the batch in the epoch
  std::int64_t full_ = 0;    // samples of the epoch's first batch
  Mean mean_;                // loss of the epoch that is reported now
  bool going_on_ = true;
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
