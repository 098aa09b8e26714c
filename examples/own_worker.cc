/// This program is its own worker: its ranks are processes of this host, and each runs it.

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
    return sc::worker_main(argc, argv);  // before anything is printed, opened or computed
  }
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
  auto cluster = sc::Cluster::spawn(2, {.program = "/proc/self/exe"});
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 1e-2});
  // clang-format on
  for (const sc::WorkerPlace& worker : cluster.workers()) {
    std::cout << "rank " << worker.rank.value << " is process " << worker.process << '\n';
  }
  for (int i = 0; i < 100; ++i) {
    sc::StepFuture step = trainer.step(x, y);
    if (i % 20 == 19) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
