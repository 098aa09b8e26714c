#include "stagecraft/tools/train/text_work.h"

#include <algorithm>

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/tensor_files/weights.h"
#include "stagecraft/examples/models/llama.h"
#include "stagecraft/tools/train/llama_size.h"

namespace stagecraft::tools {
namespace {

constexpr std::int64_t kDefaultLayers = 4;

// Training counts its steps from 0, so no step trains on the windows that evaluations read.
constexpr std::int64_t kEvaluationStep = -1;

// Read in growing pieces, a text takes up to three times its bytes for a moment.
constexpr double kReading = 3.0;

std::vector<NamedTensor> named(const auto& items) {
  std::vector<NamedTensor> all;
  for (const auto& item : items) {
    all.push_back({item.key(), item.value()});
  }
  return all;
}

}  // namespace

TextWork::TextWork(const TrainOptions& options, double most)
    : options_(options), text_(ByteText::read(options.text, options.sequence, most / kReading)) {}

TrainOptions TextWork::settled(const TrainOptions& options) const {
  return options;
}

examples::LlamaOptions TextWork::model(const ScheduleChoice& choice) const {
  if (options_.layers && choice.stages > *options_.layers) {
    throw Error(
        Errc::UsageArgument,
        fmt::format(
            "--layers expects at least {}, one for each of the schedule's stages, found {}; give "
            "more layers, or fewer --ranks or --stages",
            choice.stages,
            *options_.layers));
  }
  return {.vocabulary = text_.vocabulary(),
          .layers = options_.layers.value_or(std::max<std::int64_t>(kDefaultLayers, choice.stages)),
          .dim = options_.dim,
          .heads = options_.heads,
          .ffn = options_.ffn,
          .sequence = options_.sequence,
          .stages = choice.stages,
          .seed = options_.seed};
}

WorkBytes TextWork::bytes(const ScheduleChoice& choice) const {
  const examples::LlamaOptions sizes = model(choice);
  return {.parameters = weight_bytes(sizes),
          .description = description_bytes(sizes),
          .microbatch = least_activation_bytes(sizes, options_.microbatch_size),
          .batch = 2.0 * sizeof(std::int64_t) * static_cast<double>(options_.sequence) *
                   static_cast<double>(options_.microbatch_size) *
                   static_cast<double>(choice.microbatches)};
}

Program TextWork::compile(const ScheduleChoice& choice) {
  examples::Llama llama(model(choice));
  if (options_.load_weights) {
    load_weights(*options_.load_weights,
                 read_weights(*options_.load_weights),
                 named(llama->named_parameters()),
                 named(llama->named_buffers()));
  }
  const WorkBatch example = batch(0, choice);
  return stagecraft::compile(llama,
                             {.inputs = example.inputs,
                              .labels = example.labels,
                              .loss = examples::next_token_loss,
                              .microbatches = choice.microbatches,
                              .recompute = options_.recompute});
}

WorkBatch TextWork::batch(std::int64_t step, const ScheduleChoice& choice) const {
  const TextBatch windows =
      text_.batch(options_.seed, step, options_.microbatch_size * choice.microbatches);
  return {{windows.tokens}, {windows.targets}};
}

WorkBatch TextWork::evaluation(const ScheduleChoice& choice) const {
  return batch(kEvaluationStep, choice);
}

std::optional<std::int64_t> TextWork::tokens(const ScheduleChoice& choice) const {
  return options_.microbatch_size * choice.microbatches * options_.sequence;
}

}  // namespace stagecraft::tools
