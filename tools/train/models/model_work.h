/// ModelWork: what the works of our own models share. A model adds how large it is, how it is built
/// and what a batch of it is.
#pragma once

#include <utility>
#include <vector>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tools/train/work.h"

namespace stagecraft::tools {

// Training counts its steps from 0, so no step trains on what is drawn for this one.
inline constexpr std::int64_t kEvaluationStep = -1;

class ModelWork : public Work {
 public:
  explicit ModelWork(const TrainOptions& options) : options_(options) {}

  [[nodiscard]] TrainOptions settled(const TrainOptions& options) const override { return options; }
  [[nodiscard]] WorkBatch batch(std::int64_t step, const ScheduleChoice& choice) const override {
    return draw(step, options_.microbatch_size, choice.microbatches);
  }
  [[nodiscard]] WorkBatch evaluation(const ScheduleChoice& choice) const override {
    return draw(kEvaluationStep, options_.microbatch_size, choice.microbatches);
  }
  [[nodiscard]] std::optional<std::int64_t> tokens(
      const ScheduleChoice& /*choice*/) const override {
    return std::nullopt;
  }

 protected:
  /// What one step trains on: so many microbatches of `size` examples.
  [[nodiscard]] virtual WorkBatch draw(std::int64_t step,
                                       std::int64_t size,
                                       int microbatches) const = 0;

  /// How many layers for so many stages, `least` unless --layers says it.
  /// Errors: UsageArgument for more stages than `of_layers` of them make.
  [[nodiscard]] std::int64_t layers(int stages) const;

  /// What follows from the sizes of a model. Units: bytes; `activations` of one microbatch, at the
  /// least; `example`: inputs and labels of one.
  [[nodiscard]] WorkBytes bytes_of(double weights,
                                   double layers,
                                   double activations,
                                   double example,
                                   const ScheduleChoice& choice) const;

  /// Puts in the weights of --load-weights, and compiles.
  template <class Model>
  [[nodiscard]] Program compile_model(Model& model, Loss loss, const ScheduleChoice& choice) const {
    load_asked_weights(named(model->named_parameters()), named(model->named_buffers()));
    const WorkBatch example = batch(0, choice);
    return stagecraft::compile(model,
                               {.inputs = example.inputs,
                                .labels = example.labels,
                                .loss = std::move(loss),
                                .microbatches = choice.microbatches,
                                .cut = choice.cut.value_or(AtMarkers{}),
                                .recompute = options_.recompute});
  }

  const TrainOptions options_;

 private:
  static std::vector<NamedTensor> named(const auto& items) {
    std::vector<NamedTensor> all;
    for (const auto& item : items) {
      all.push_back({item.key(), item.value()});
    }
    return all;
  }

  void load_asked_weights(const std::vector<NamedTensor>& parameters,
                          const std::vector<NamedTensor>& buffers) const;
};

}  // namespace stagecraft::tools
