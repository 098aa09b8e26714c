#include "stagecraft/actors/trainer/steps/evaluator.h"

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>

#include <ATen/TensorOperators.h>

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
  StepInput input = entry_.input(sent, parts);
  const auto results = std::make_shared<std::vector<Future<at::Tensor>>>();
  input.results = results;
  StepFuture step = entry_.enter(std::move(input));
  return {sent, std::move(parts), std::move(step), results};
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

std::vector<at::Tensor> Evaluator::predict(const Batch& inputs) {
  const UnderWay batch = begin(captures().prediction(inputs), inputs, {});
  (void)batch.step.get();
  const OnCallersThread scope;
  return joined(results_of(batch), batch.parts, batch.sent.program.compiled().row_dimensions);
}

Evaluation Evaluator::evaluate(BatchSource& batches, const std::vector<Metric>& metrics) {
  Evaluation all;
  for (const Metric& metric : metrics) {
    all.metrics.emplace_back(metric.name(), at::Tensor());
  }
  std::deque<UnderWay> under_way;
  const auto take = [&] {
    const UnderWay batch = std::move(under_way.front());
    under_way.pop_front();
    add(batch, all);
  };
  batches.begin_epoch();
  while (const std::optional<LabeledBatch> batch = batches.next()) {
    const auto& [inputs, labels] = *batch;
    const Program of = captures().measurement(metrics, inputs, labels);
    if (std::ssize(under_way) == options_.outstanding) {
      take();
    }
    under_way.push_back(begin(of, inputs, labels));
  }
  while (!under_way.empty()) {
    take();
  }
  if (all.samples == 0) {
    throw Error(Errc::UsageArgument, "evaluate() expects at least one batch, found none");
  }
  all.loss /= static_cast<double>(all.samples);
  for (auto& [name, sum] : all.metrics) {
    sum /= static_cast<double>(all.samples);
  }
  return all;
}

/// Adds the result of a batch, times its samples.
void Evaluator::add(const UnderWay& batch, Evaluation& all) const {
  const StepResult result = batch.step.get();
  const OnCallersThread scope;
  const std::vector<at::Tensor> found = means(results_of(batch), batch.parts);
  const auto samples = static_cast<double>(batch.parts.samples);
  all.loss += result.mean_loss * samples;
  all.samples += batch.parts.samples;
  ++all.batches;
  for (std::size_t i = 0; i < found.size(); ++i) {
    at::Tensor& sum = all.metrics[i].second;
    sum = sum.defined() ? sum + found[i] * samples : found[i] * samples;
  }
}

}  // namespace stagecraft
