/// ModelWork is the shared part of the works of our own models. A model adds its size, its
/// construction and its batches.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "stagecraft/compiler/compile.h"
#include "stagecraft/tools/train/work/asked_weights.h"
#include "stagecraft/tools/train/work/work.h"
#include "stagecraft/tools/train/work/work_request.h"

namespace stagecraft::tools {

// Training counts its steps from 0, so no step trains on the examples of this one.
inline constexpr std::int64_t kEvaluationStep = -1;

class ModelWork : public Work {
 public:
  explicit ModelWork(const WorkRequest& request) : request_(request) {}

  [[nodiscard]] WorkBatch batch(std::int64_t step, const WorkShape& shape) const override {
    return draw(step, samples_of(shape));
  }
  [[nodiscard]] WorkBatch evaluation(std::int64_t /*number*/,
                                     const WorkShape& shape) const override {
    return draw(kEvaluationStep, samples_of(shape));
  }

 protected:
  /// Returns a size of the model by the name of its option.
  [[nodiscard]] std::int64_t size(std::string_view name) const {
    return request_.model.sizes.whole(name);
  }

  /// Returns the batch of one step.
  [[nodiscard]] virtual WorkBatch draw(std::int64_t step, std::int64_t samples) const = 0;

  /// Returns the number of layers for these stages, the least possible unless --layers gives it.
  /// Errors: UsageArgument for more stages than that number of layers makes.
  [[nodiscard]] std::int64_t layers(int stages) const;

  /// Returns the bytes that follow from the sizes of a model. Units: bytes. `activations`: of one
  /// microbatch, a lower bound. `example`: inputs and labels of one example.
  [[nodiscard]] WorkBytes bytes_of(double weights,
                                   double layers,
                                   double activations,
                                   double example,
                                   const WorkShape& shape) const;

  /// Loads the weights of --load-weights, and compiles.
  template <class Model>
  [[nodiscard]] Program compile_model(Model& model, Loss loss, const WorkShape& shape) const {
    load_asked_weights(request_, named(model->named_parameters()), named(model->named_buffers()));
    const WorkBatch example = batch(0, shape);
    return stagecraft::compile(model,
                               {.inputs = example.inputs,
                                .labels = example.labels,
                                .loss = std::move(loss),
                                .microbatches = shape.microbatches,
                                .cut = shape.cut.value_or(AtMarkers{}),
                                .recompute = request_.recompute});
  }

  const WorkRequest request_;

 private:
  static std::int64_t samples_of(const WorkShape& shape) {
    return shape.microbatch_size * shape.microbatches;
  }

  static std::vector<NamedTensor> named(const auto& items) {
    std::vector<NamedTensor> all;
    for (const auto& item : items) {
      all.push_back({item.key(), item.value()});
    }
    return all;
  }
};

}  // namespace stagecraft::tools
