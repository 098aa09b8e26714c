#include "stagecraft/actors/trainer/steps/evaluator.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <numeric>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>

#include "stagecraft/actors/executor/step/loss_weight.h"
#include "stagecraft/actors/trainer/steps/callers_thread.h"
#include "stagecraft/base/error.h"
#include "stagecraft/compiler/program/compiled_program.h"

namespace stagecraft {

Evaluations& Evaluator::captures() const {
  if (!program_.stage_graph().microbatch_sizes().empty()) {
    throw Error(Errc::UsageArgument,
                "the stages of this trainer's schedule take microbatches of different sizes, and "
                "an evaluation has one size: save a checkpoint and evaluate with a trainer whose "
                "schedule has no sizes");
  }
  if (evaluations_ == nullptr) {
    throw Error(Errc::UsageArgument,
                "this program was made without a module, and an evaluation captures the module "
                "again: make the program with sc::compile");
  }
  return *evaluations_;
}

Evaluator::UnderWay Evaluator::begin(const Program& of, const Batch& inputs, const Batch& labels) {
  const OnCallersThread scope;
  Parts parts = parts_of(of, inputs, labels, entry_.memory());
  const KnownPrograms::Sent& sent = entry_.sent(of, parts);
  auto counts = static_cast<double>(parts.samples);
  const std::vector<double> by_samples = parts.weights;  // of metrics
  if (options_.loss_weight && !labels.empty()) {
    const std::vector<double> of_parts = loss_counts(options_.loss_weight, parts);
    counts = std::accumulate(of_parts.begin(), of_parts.end(), 0.0);
    parts.weights = relative_weights(of_parts, of_parts.front());
  }
  StepInput input = entry_.input(sent, parts);
  parts.weights = by_samples;
  const auto results = std::make_shared<std::vector<Future<at::Tensor>>>();
  input.results = results;
  StepFuture step = entry_.enter(std::move(input));
  return {sent, std::move(parts), counts, std::move(step), results};
}

EvaluationResults Evaluator::results_of(const UnderWay& batch) const {
  const Deadline deadline = crew_.deadline(options_.step_deadline);
  return take_results(batch.sent,
                      entry_.layout(),
                      batch.parts,
                      *batch.results,
                      [this, deadline](Rank from, const Future<at::Tensor>& result) {
                        return crew_.wait(from, result, deadline);
                      });
}

std::vector<at::Tensor> Evaluator::outputs_of(const UnderWay& batch) const {
  (void)batch.step.get();
  const OnCallersThread scope;
  return joined(results_of(batch), batch.parts, batch.sent.program.compiled().row_dimensions);
}

std::vector<at::Tensor> Evaluator::predict(const Batch& inputs) {
  return outputs_of(begin(captures().prediction(inputs), inputs, {}));
}

void Evaluator::pass(BatchSource& source,
                     const std::function<Program(const LabeledBatch&)>& program_of,
                     bool with_labels,
                     const std::function<void(const UnderWay&)>& take) {
  std::deque<UnderWay> under_way;
  const auto take_oldest = [&] {
    const UnderWay batch = std::move(under_way.front());
    under_way.pop_front();
    take(batch);
  };
  source.begin_epoch();
  while (const std::optional<LabeledBatch> batch = source.next()) {
    const Program of = program_of(*batch);
    if (std::ssize(under_way) == options_.outstanding) {
      take_oldest();
    }
    under_way.push_back(begin(of, batch->inputs, with_labels ? batch->labels : Batch()));
  }
  while (!under_way.empty()) {
    take_oldest();
  }
}

void Evaluator::predict(BatchSource& batches, const OnOutputs& each) {
  pass(
      batches,
      [&](const LabeledBatch& batch) { return captures().prediction(batch.inputs); },
      /*with_labels=*/false,
      [&](const UnderWay& batch) { each(outputs_of(batch)); });
}

std::vector<at::Tensor> Evaluator::predict(BatchSource& batches) {
  std::vector<std::vector<at::Tensor>> all;
  std::vector<std::int64_t> row_dimensions;
  pass(
      batches,
      [&](const LabeledBatch& batch) { return captures().prediction(batch.inputs); },
      /*with_labels=*/false,
      [&](const UnderWay& batch) {
        if (all.empty()) {
          row_dimensions = batch.sent.program.compiled().row_dimensions;
        }
        all.push_back(outputs_of(batch));
      });
  if (all.empty()) {
    throw Error(Errc::UsageArgument, "predict() expects at least one batch, found none");
  }
  return concatenated(all, row_dimensions);
}

Evaluation Evaluator::evaluate(BatchSource& batches, const std::vector<Metric>& metrics) {
  Evaluation all;
  double counts = 0.0;
  for (const Metric& metric : metrics) {
    all.metrics.emplace_back(metric.name(), at::Tensor());
  }
  pass(
      batches,
      [&](const LabeledBatch& batch) {
        return captures().measurement(metrics, batch.inputs, batch.labels);
      },
      /*with_labels=*/true,
      [&](const UnderWay& batch) { add(batch, all, counts); });
  if (all.samples == 0) {
    throw Error(Errc::UsageArgument, "evaluate() expects at least one batch, found none");
  }
  all.loss /= counts;
  for (auto& [name, sum] : all.metrics) {
    sum /= static_cast<double>(all.samples);
  }
  return all;
}

/// Adds the result of a batch: its loss times what it counts, metrics times its samples.
void Evaluator::add(const UnderWay& batch, Evaluation& all, double& counts) const {
  const StepResult result = batch.step.get();
  const OnCallersThread scope;
  const std::vector<at::Tensor> found = means(results_of(batch), batch.parts);
  const auto samples = static_cast<double>(batch.parts.samples);
  all.loss += result.mean_loss * batch.counts;
  counts += batch.counts;
  all.samples += batch.parts.samples;
  ++all.batches;
  for (std::size_t i = 0; i < found.size(); ++i) {
    at::Tensor& sum = all.metrics[i].second;
    sum = sum.defined() ? sum + found[i] * samples : found[i] * samples;
  }
}

}  // namespace stagecraft
