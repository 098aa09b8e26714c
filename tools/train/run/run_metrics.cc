#include "stagecraft/tools/train/run/run_metrics.h"

#include <algorithm>
#include <iterator>
#include <ostream>
#include <utility>

#include <fmt/format.h>

#include "stagecraft/actors/trainer/step_metrics.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft::tools {
namespace {

constexpr const char* kTokens = "tokens_per_second";
constexpr const char* kSamples = "samples_per_second";
constexpr const char* kLossScale = "loss_scale";
constexpr const char* kRestarts = "restarts";
constexpr const char* kRepeated = "repeated_steps";
constexpr const char* kHealing = "healing_seconds";

}  // namespace

RunMetrics::RunMetrics(const TrainJob& job, std::int64_t steps_made, Console& console)
    : job_(job), console_(console), written_(steps_made) {
  if (!job.options.keeping.metrics) {
    return;
  }
  std::vector<std::string> columns{"loss",
                                   "seconds",
                                   job.work->tokens(job.choice.shape) ? kTokens : kSamples,
                                   "gradient_norm",
                                   "learning_rate",
                                   "bubble",
                                   "peak_bytes"};
  if (loss_scaling_of(job.options.pipeline.precision)) {
    columns.emplace_back(kLossScale);
  }
  if (job.options.workers.restarts > 0) {
    columns.insert(columns.end(), {kRestarts, kRepeated, kHealing});
  }
  Counts zeros;
  for (const auto& [name, size] : counts_in(job.execution.program.compiled().graph)) {
    zeros[name].resize(static_cast<std::size_t>(size));
  }
  for (const auto& [name, zero] : metrics_of(zeros)) {
    columns.push_back(name);
  }
  if (job.options.run.eval_every) {
    columns.emplace_back("eval_loss");
    for (const Metric& metric : job.work->metrics()) {
      columns.push_back("eval_" + metric.name());
    }
  }
  writer_.emplace(*job.options.keeping.metrics, columns, steps_made);
}

void RunMetrics::step(const StepResult& result, std::int64_t units) {
  step_ = result.step;
  values_ = metrics_of(result);
  std::ranges::move(metrics_of(result.counts), std::back_inserter(values_));
  if (loss_scaling_of(job_.options.pipeline.precision)) {
    values_.emplace_back(kLossScale, result.loss_scale);
  }
  values_.emplace_back(job_.work->tokens(job_.choice.shape) ? kTokens : kSamples,
                       static_cast<double>(units) / result.seconds);
}

void RunMetrics::healed(std::int64_t restarts, double seconds) {
  restarts_ += restarts;
  healing_seconds_ += seconds;
}

void RunMetrics::repeated() {
  ++repeated_;
}

void RunMetrics::lost(std::int64_t step) {
  step_ = step;
  values_.clear();
}

void RunMetrics::evaluated(const EvalLine& found) {
  values_.emplace_back("eval_loss", found.loss);
  for (const auto& [name, value] : found.metrics) {
    values_.emplace_back("eval_" + name, value);
  }
}

void RunMetrics::flush() {
  if (step_ <= written_) {
    return;
  }
  written_ = step_;
  if (job_.options.workers.restarts > 0) {
    add_restarts();
  }
  write();
}

void RunMetrics::add_restarts() {
  values_.emplace_back(kRestarts, std::exchange(restarts_, 0));
  values_.emplace_back(kRepeated, std::exchange(repeated_, 0));
  values_.emplace_back(kHealing, std::exchange(healing_seconds_, 0.0));
}

void RunMetrics::write() {
  if (!writer_ || failure_) {
    return;
  }
  try {
    writer_->write(written_, values_);
  } catch (const Error& error) {
    failure_ = error;
    console_.err << fmt::format(
                        "stagecraft: --metrics: {}; the run continues without metrics and exits "
                        "with 2\n",
                        error.message())
                 << std::flush;
  }
}

void RunMetrics::close() {
  if (restarts_ > 0 || repeated_ > 0) {
    values_.clear();
    add_restarts();
    write();
  }
  if (failure_) {
    throw Error(*failure_);
  }
}

}  // namespace stagecraft::tools
