/// Two encoders feed one head: the stages form a DAG, not a chain.
///
///     image ---+
///              +--- head
///     text  ---+
///
/// Neither encoder waits for the other; the builder sees that from the stage graph.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

torch::nn::Sequential make_encoder(int width) {
  return torch::nn::Sequential(
      torch::nn::Linear(width, 64), torch::nn::GELU(), torch::nn::Linear(64, 32));
}

struct Head : torch::nn::Module {
  torch::Tensor scale = register_parameter("scale", torch::tensor(5.0F));

  /// Compares every image with every text of the microbatch.
  torch::Tensor forward(torch::Tensor image, torch::Tensor text) {
    namespace F = torch::nn::functional;
    return scale * torch::matmul(F::normalize(image, F::NormalizeFuncOptions().dim(1)),
                                 F::normalize(text, F::NormalizeFuncOptions().dim(1)).t());
  }
};

struct Clip : torch::nn::Module {
  torch::nn::Sequential image_encoder = register_module("image_encoder", make_encoder(48));
  torch::nn::Sequential text_encoder = register_module("text_encoder", make_encoder(16));
  std::shared_ptr<Head> head = register_module("head", std::make_shared<Head>());

  torch::Tensor forward(torch::Tensor image, torch::Tensor text) {
    auto i = sc::stage("image", image_encoder, image);
    auto t = sc::stage("text", text_encoder, text);
    return sc::stage("head", head, i, t);
  }
};

/// Each image belongs to the text at its own place.
torch::Tensor contrastive(torch::Tensor logits, torch::Tensor place) {
  return (torch::cross_entropy_loss(logits, place) + torch::cross_entropy_loss(logits.t(), place)) /
         2;
}

int main() {
  constexpr int kMicrobatches = 4, kPairs = 16;
  torch::manual_seed(0);
  Clip clip;
  auto text = torch::randn({kMicrobatches * kPairs, 16});
  auto image = torch::matmul(text, torch::randn({16, 48}));  // so there is something to find
  auto place = torch::arange(kPairs).repeat({kMicrobatches});

  auto program = sc::compile(clip,
                             {.inputs = {image, text},
                              .labels = {place},
                              .loss = contrastive,
                              .microbatches = kMicrobatches});
  std::cout << program.explain();
  auto schedule = sc::one_f_one_b(program.stage_graph(), kMicrobatches);
  std::cout << to_string(schedule);

  auto cluster = sc::Cluster::local(sc::Layout::of(schedule).ranks());
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 3e-3});
  for (int i = 0; i < 40; ++i) {
    sc::StepFuture step = trainer.step({image, text}, {place});
    if (i % 10 == 9) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
