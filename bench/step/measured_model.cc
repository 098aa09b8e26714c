#include "stagecraft/bench/step/measured_model.h"

#include <utility>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/examples/models/llama.h"
#include "stagecraft/examples/models/moe.h"
#include "stagecraft/examples/models/unet.h"
#include "stagecraft/examples/models/vit.h"
#include "stagecraft/stagecraft.h"

namespace stagecraft::bench {
namespace {

using Tensors = std::vector<torch::Tensor>;

constexpr std::int64_t kImages = 8;  // of a microbatch
constexpr std::int64_t kDiffusionSteps = 1000;

Tensors first_of(const Batch& batch) {
  Tensors first;
  for (const BatchTensor& one : batch) {
    first.push_back(one.tensor.narrow(0, 0, one.tensor.size(0) / kMicrobatches));
  }
  return first;
}

/// `module`: a holder. `loss`: for compile. `evaluate`: returns the loss of the module itself, for
/// the inputs and labels of a microbatch.
template <class Module, class LossOfOutputs, class Evaluate>
MeasuredModel measured(std::string name,
                       Module module,
                       Batch inputs,
                       torch::Tensor labels,
                       LossOfOutputs loss,
                       Evaluate evaluate) {
  MeasuredModel model{.name = std::move(name),
                      .inputs = std::move(inputs),
                      .labels = {std::move(labels)},
                      .one_input = {},
                      .one_label = {},
                      .microbatches = kMicrobatches};
  model.one_input = first_of(model.inputs);
  model.one_label = first_of(model.labels);
  model.compile = [module, loss, in = model.inputs, out = model.labels]() mutable {
    return stagecraft::compile(
        module, {.inputs = in, .labels = out, .loss = loss, .microbatches = kMicrobatches});
  };
  model.loss = [module, evaluate, in = model.one_input, out = model.one_label[0]]() mutable {
    return evaluate(*module, in, out);
  };
  model.parameters = module->parameters();
  return model;
}

}  // namespace

examples::LlamaOptions llama_options(std::int64_t dim, int stages) {
  return {.vocabulary = 96,
          .layers = 8,
          .dim = dim,
          .heads = 8,
          .ffn = dim * 43 / 16,
          .sequence = 128,
          .stages = stages};
}

MeasuredModel llama(std::int64_t dim, int stages) {
  const examples::LlamaOptions size = llama_options(dim, stages);
  const std::vector<std::int64_t> shape{kLlamaSequences * kMicrobatches, size.sequence};
  return measured(fmt::format("llama, dim {}, {} layers, ffn {}, seq {}, microbatch {} x {}",
                              size.dim,
                              size.layers,
                              size.ffn,
                              size.sequence,
                              kLlamaSequences,
                              kMicrobatches),
                  examples::Llama(size),
                  {torch::randint(size.vocabulary, shape)},
                  torch::randint(size.vocabulary, shape),
                  &examples::next_token_loss,
                  [](examples::LlamaImpl& module, const Tensors& in, const torch::Tensor& out) {
                    return examples::next_token_loss(module.forward(in[0]), out);
                  });
}

MeasuredModel moe(std::int64_t dim, int stages) {
  const examples::LlamaOptions like = llama_options(dim, stages);
  const examples::MoeOptions size{.vocabulary = like.vocabulary,
                                  .layers = like.layers,
                                  .dim = dim,
                                  .heads = like.heads,
                                  .ffn = dim,
                                  .experts = 8,
                                  .sequence = like.sequence,
                                  .stages = stages};
  const std::vector<std::int64_t> shape{kLlamaSequences * kMicrobatches, size.sequence};
  const examples::MoeLoss loss = examples::moe_loss(size.balance);
  return measured(
      fmt::format("moe, dim {}, {} layers of {} experts, ffn {}, seq {}, microbatch {} x {}",
                  size.dim,
                  size.layers,
                  size.experts,
                  size.ffn,
                  size.sequence,
                  kLlamaSequences,
                  kMicrobatches),
      examples::Moe(size),
      {torch::randint(size.vocabulary, shape)},
      torch::randint(size.vocabulary, shape),
      loss,
      [loss](examples::MoeImpl& module, const Tensors& in, const torch::Tensor& out) {
        const auto [logits, balance] = module.forward(in[0]);
        return loss(logits, balance, out);
      });
}

MeasuredModel vit(int stages) {
  const examples::VitOptions size{.stages = stages};
  const std::int64_t images = kImages * kMicrobatches;
  return measured(fmt::format("vit, dim {}, {} layers, image {}, microbatch {} x {}",
                              size.dim,
                              size.layers,
                              size.image,
                              kImages,
                              kMicrobatches),
                  examples::Vit(size),
                  {torch::randn({images, size.channels, size.image, size.image})},
                  torch::randint(size.classes, {images}),
                  &examples::classification_loss,
                  [](examples::VitImpl& module, const Tensors& in, const torch::Tensor& out) {
                    return examples::classification_loss(module.forward(in[0]), out);
                  });
}

MeasuredModel unet(int stages) {
  const examples::UnetOptions size{.stages = stages};
  const std::int64_t images = kImages * kMicrobatches;
  const std::vector<std::int64_t> shape{images, size.channels, size.image, size.image};
  return measured(fmt::format("unet, width {}, {} levels, image {}, microbatch {} x {}",
                              size.width,
                              size.levels,
                              size.image,
                              kImages,
                              kMicrobatches),
                  examples::Unet(size),
                  {torch::randn(shape), torch::randint(kDiffusionSteps, {images})},
                  torch::randn(shape),
                  &examples::noise_loss,
                  [](examples::UnetImpl& module, const Tensors& in, const torch::Tensor& out) {
                    return examples::noise_loss(module.forward(in[0], in[1]), out);
                  });
}

}  // namespace stagecraft::bench
