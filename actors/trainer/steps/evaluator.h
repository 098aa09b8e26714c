/// Evaluator makes the predictions and evaluations of a trainer: forwards of the module in
/// evaluation mode, through the ranks' pipeline.
///
/// A Trainer owns it and uses it on its caller's thread. As many batches of an evaluation are in
/// progress together as steps may be.
#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/crew/crew.h"
#include "stagecraft/actors/data/batch_source.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/trainer/steps/evaluation.h"
#include "stagecraft/actors/trainer/steps/evaluation_results.h"
#include "stagecraft/actors/trainer/steps/step_entry.h"
#include "stagecraft/actors/trainer/steps/step_future.h"
#include "stagecraft/compiler/module/batch.h"
#include "stagecraft/compiler/module/metric.h"
#include "stagecraft/compiler/program/program.h"
#include "stagecraft/compiler/shapes/evaluations.h"

namespace stagecraft {

class Evaluator {
 public:
  /// Views the first three arguments. `program`: laid out for the schedule. `evaluations`: null for
  /// a program without a module.
  Evaluator(StepEntry& entry,
            const Crew& crew,
            const TrainerOptions& options,
            Program program,
            std::shared_ptr<Evaluations> evaluations)
      : entry_(entry),
        crew_(crew),
        options_(options),
        program_(std::move(program)),
        evaluations_(std::move(evaluations)) {}

  /// Work like Trainer::predict and Trainer::evaluate.
  [[nodiscard]] std::vector<at::Tensor> predict(const Batch& inputs);
  [[nodiscard]] std::vector<at::Tensor> predict(BatchSource& batches);
  void predict(BatchSource& batches, const OnOutputs& each);
  [[nodiscard]] Evaluation evaluate(BatchSource& batches, const std::vector<Metric>& metrics);

 private:
  /// UnderWay is a batch that is being evaluated.
  struct UnderWay {
    KnownPrograms::Sent sent;
    Parts parts;          ///< without their tensors
    double counts = 0.0;  ///< by which the batch's loss counts
    StepFuture step;
    std::shared_ptr<std::vector<Future<at::Tensor>>> results;
  };

  [[nodiscard]] Evaluations& captures() const;
  [[nodiscard]] UnderWay begin(const Program& of, const Batch& inputs, const Batch& labels);
  [[nodiscard]] EvaluationResults results_of(const UnderWay& batch) const;
  /// Begins the batches of `source` in order, and calls `take` with each, in order.
  void pass(BatchSource& source,
            const std::function<Program(const LabeledBatch&)>& program_of,
            bool with_labels,
            const std::function<void(const UnderWay&)>& take);
  [[nodiscard]] std::vector<at::Tensor> outputs_of(const UnderWay& batch) const;
  void add(const UnderWay& batch, Evaluation& all, double& counts) const;

  StepEntry& entry_;
  const Crew& crew_;
  const TrainerOptions& options_;
  const Program program_;
  const std::shared_ptr<Evaluations> evaluations_;
};

}  // namespace stagecraft
