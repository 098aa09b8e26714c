/// The short program: an ordinary module, two stage markers, a schedule written as a 2-D array.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;
using namespace sc::cells;  // F(stage, microbatch), B, idle

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 64))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(64, 1))};

  torch::Tensor forward(torch::Tensor x) {
    auto h = sc::stage("first", [&] { return torch::tanh(in(x)); });
    return sc::stage("second", out, h);
  }
};

int main() {
  torch::manual_seed(0);
  Net net;
  auto x = torch::randn({64, 8});
  auto y = x.square().sum(1, /*keepdim=*/true);
  auto loss = [](torch::Tensor output, torch::Tensor label) {
    return torch::mse_loss(output, label);
  };

  auto program = sc::compile(net, {.inputs = {x}, .labels = {y}, .loss = loss, .microbatches = 2});
  // clang-format off
  sc::Schedule schedule{{F(0, 0), F(0, 1), idle,    B(0, 0), idle,    B(0, 1)},   // device 0
                        {idle,    F(1, 0), B(1, 0), F(1, 1), B(1, 1), idle   }};  // device 1
  // clang-format on
  auto cluster = sc::Cluster::local(2);
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 1e-2});
  for (int i = 0; i < 100; ++i) {
    sc::StepFuture step = trainer.step({x}, {y});  // returns at once
    if (i % 20 == 19) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
