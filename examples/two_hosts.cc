/// A program for `stagecraft launch`. It contains its schedule, but not the places of its ranks.
///
///     stagecraft launch --hosts hosts -- build/release/bin/examples/two_hosts

#include <iomanip>
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

int main(int argc, char** argv) {
  if (sc::is_worker(argc, argv)) {
    return sc::worker_main(argc, argv);  // where the hosts' file says worker=, and this program
  }
  torch::manual_seed(0);
  Net net;
  auto x = torch::randn({66, 8});
  auto y = x.square().sum(1, /*keepdim=*/true);
  auto loss = [](torch::Tensor output, torch::Tensor label) {
    return torch::mse_loss(output, label);
  };

  auto program = sc::compile(net, {.inputs = {x}, .labels = {y}, .loss = loss, .microbatches = 3});
  // clang-format off
  sc::Schedule schedule{
      {F(0, 0), F(0, 1), F(0, 2), idle,    B(0, 0), idle,    B(0, 1), B(0, 2)},   // node-a
      {idle,    F(1, 0), F(1, 1), B(1, 0), F(1, 2), B(1, 1), B(1, 2), idle   }};  // node-b
  auto cluster = sc::Cluster::from_env();  // as `stagecraft launch` says; alone: threads
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 1e-2});
  // clang-format on
  std::cout << std::setprecision(17);  // all digits: the same on however many hosts
  for (int i = 0; i < 100; ++i) {
    sc::StepFuture step = trainer.step(x, y);
    if (i % 20 == 19) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
