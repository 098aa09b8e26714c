/// Trains a U-Net in a pipeline, in a loop of one's own: a frozen text encoder and a frozen image
/// encoder come before it, the loss after it. With an argument the ranks are processes.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;
using torch::nn::Conv2d, torch::nn::Conv2dOptions;

/// Two levels down and up, with the skip connection over the pipeline's middle.
struct UNet : torch::nn::Module {
  Conv2d in{register_module("in", Conv2d(Conv2dOptions(4, 16, 3).padding(1)))};
  Conv2d down{register_module("down", Conv2d(Conv2dOptions(16, 32, 3).stride(2).padding(1)))};
  torch::nn::Linear text{register_module("text", torch::nn::Linear(32, 32))};
  Conv2d middle{register_module("middle", Conv2d(Conv2dOptions(32, 64, 3).padding(1)))};
  Conv2d out{register_module("out", Conv2d(Conv2dOptions(32, 4, 3).padding(1)))};

  torch::Tensor forward(torch::Tensor latents, torch::Tensor words) {
    auto high = sc::stage("high", [&] { return torch::silu(in(latents)); });
    auto low = sc::stage("low", [&] {
      auto h = torch::silu(down(high)) + text(words).view({-1, 32, 1, 1});
      return torch::pixel_shuffle(torch::silu(middle(h)), 2);
    });
    return sc::stage("up", [&] { return out(torch::cat({high, low}, 1)); });
  }
};

int main(int argc, char**) {
  torch::manual_seed(0);
  torch::nn::EmbeddingBag encoder(100, 32);      // of words, frozen
  Conv2d vae(Conv2dOptions(3, 4, 4).stride(4));  // of images, frozen
  auto words = torch::randint(100, {16, 6}), images = torch::randn({16, 3, 32, 32});

  auto cluster = argc > 1 ? sc::Cluster::spawn(3) : sc::Cluster::local(3);
  auto unet = sc::pipelined(cluster,
                            std::make_shared<UNet>(),
                            {.inputs = {torch::zeros({16, 4, 8, 8}), torch::zeros({16, 32})},
                             .microbatches = 4,
                             .optimizer = sc::AdamW{.lr = 3e-3}});
  for (int i = 1; i <= 40; ++i) {
    torch::Tensor latents, text;
    {
      torch::NoGradGuard frozen;
      latents = vae(images);
      text = encoder(words);
    }
    auto noise = torch::randn_like(latents) * 0.5 + 1;
    auto loss = torch::mse_loss(unet(latents + noise, text), noise);
    loss.backward();  // through the ranks, which update the weights
    std::cout << "step " << i << "  loss " << loss.item<double>() << '\n';
  }
}
