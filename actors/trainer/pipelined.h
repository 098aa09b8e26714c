/// pipelined runs one module of a training program in a pipeline. All else stays the caller's own
/// loop: what comes before, the loss, and its backward.
///
///   auto unet = sc::pipelined(cluster, model, {.inputs = {latents, text}, .microbatches = 4,
///                                              .optimizer = sc::AdamW{.lr = 1e-4}});
///   auto loss = mse_loss(unet(latents, text), noise);      // all forwards
///   loss.backward();                                       // all backwards, and the update
///
/// The ranks train the module's parameters. A step is all or nothing, as a trainer's (TR-2).
/// If the rest of the loss works on each microbatch alone, take a Trainer whose loss calls
/// sc::on_driver instead: then schedules that overlap forwards and backwards go, too.
///
/// Thread: one at a time.
/// PI-1: gradients are those of the caller's loss; dividing it over microbatches is not needed.
///       They reach the module's parameters, not its inputs.
/// PI-2: a call without gradients (NoGradGuard) predicts, in evaluation mode.
/// PI-3: a result that is dropped without a backward drops its step: no weight changes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stagecraft/actors/cluster/cluster.h"
#include "stagecraft/actors/executor/optimizer/optimizer.h"
#include "stagecraft/actors/executor/setup/trainer_options.h"
#include "stagecraft/actors/trainer/output_exchange.h"
#include "stagecraft/actors/trainer/trainer.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/native/on_driver.h"

namespace stagecraft {

struct PipelinedOptions {
  Batch inputs;  ///< one example batch for the module
  int microbatches = 1;
  Cut cut;
  Recompute recompute;
  std::string schedule = "gpipe";  ///< one that runs all forwards before the first backward
  Optimizer optimizer = AdamW{};
  TrainerOptions trainer;
};

class Pipelined {
 public:
  /// `program`: its loss is loss_of_caller() to `between`, on the driver.
  /// Errors: those of Trainer; UsageArgument for a schedule that interleaves forwards and
  /// backwards, for scaled losses, and for results without a row for each sample.
  Pipelined(const Cluster& cluster,
            const Program& program,
            std::shared_ptr<OutputExchange> between,
            const PipelinedOptions& options);
  Pipelined(Pipelined&&) noexcept;
  Pipelined& operator=(Pipelined&&) noexcept;
  ~Pipelined();

  /// Runs the module on a batch in the form of the example's, and returns its result.
  /// Errors: UsageArgument for a module with several results, for an input that requires a
  /// gradient, for a batch that the number of microbatches does not divide, and while an earlier
  /// result waits for its backward; the step's. Those of the backwards and of the update come from
  /// the loss's backward().
  template <class... T>
  [[nodiscard]] at::Tensor operator()(const T&... inputs) {
    return only(all({BatchTensor(inputs)...}));
  }
  /// Likewise, for a module with any number of results.
  [[nodiscard]] std::vector<at::Tensor> all(const Batch& inputs);

  /// Returns the trainer of the module: for its state, its checkpoints, its learning rate. Its
  /// step() is not for use. Errors: UsageArgument while a result waits for its backward.
  [[nodiscard]] Trainer& trainer();
  /// Returns the record of the last step that has ended in an update; its losses are 0.
  [[nodiscard]] const StepResult& last_step() const;

 private:
  struct Impl;
  /// Errors: UsageArgument if this was moved from.
  [[nodiscard]] Impl& impl() const;
  [[nodiscard]] static at::Tensor only(std::vector<at::Tensor> results);

  std::shared_ptr<Impl> impl_;  ///< graphs of results keep it
};

/// Errors: those of compile, of Pipelined, and of schedule_for.
template <internal::NoFile Given>
[[nodiscard]] Pipelined pipelined(const Cluster& cluster,
                                  Given&& module,
                                  const PipelinedOptions& options) {
  auto between = std::make_shared<OutputExchange>();
  const auto loss = [between](const std::vector<at::Tensor>& outputs,
                              const std::vector<at::Tensor>& labels) {
    const auto call = [between](const DriverCode::Tensors& values) {
      const DriverCode::Tensors results(values.begin() + 1, values.end());
      return DriverCode::Tensors{loss_of_caller(between, values.front(), results)};
    };
    DriverCode::Tensors values{labels.front()};
    values.insert(values.end(), outputs.begin(), outputs.end());
    return internal::call_on_driver("the caller", call, values).front();
  };
  const Program program = compile(std::forward<Given>(module),
                                  {.inputs = options.inputs,
                                   .labels = {OutputExchange::labels(0, options.microbatches)},
                                   .loss = loss,
                                   .microbatches = options.microbatches,
                                   .cut = options.cut,
                                   .recompute = options.recompute});
  return {cluster, program, std::move(between), options};
}

}  // namespace stagecraft
