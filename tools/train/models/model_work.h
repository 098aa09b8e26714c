/// ModelWork: the shared part of the works of our own models. A model adds its size, its
/// construction and its batches.
#pragma once

#include <utility>
#include <vector>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tools/train/models/work.h"

namespace stagecraft::tools {

// Training counts its steps from 0, so no step trains on the examples of this one.
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
  /// Returns the batch of one step: `microbatches` microbatches of `size` examples.
  [[nodiscard]] virtual WorkBatch draw(std::int64_t step,
                                       std::int64_t size,
                                       int microbatches) const = 0;

  /// Returns the number of layers for these stages, the least possible unless --layers gives it.
  /// Errors: UsageArgument for more stages than that number of layers makes.
  [[nodiscard]] std::int64_t layers(int stages) const;

  /// Returns what follows from the sizes of a model. Units: bytes. `activations`: of one
  /// microbatch, a lower bound. `example`: inputs and labels of one example.
  [[nodiscard]] WorkBytes bytes_of(double weights,
                                   double layers,
                                   double activations,
                                   double example,
                                   const ScheduleChoice& choice) const;

  /// Loads the weights of --load-weights, and compiles.
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
