/// A program that is its own worker: ranks are processes of this host, and each runs this program.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

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

  auto program = sc::compile(net, {.inputs = {x}, .labels = {y}, .loss = loss, .microbatches = 4});
  auto cluster = sc::Cluster::spawn(2, {.program = "/proc/self/exe"});
  sc::Trainer trainer(
      cluster, program, sc::one_f_one_b(program.stage_graph(), 4), sc::AdamW{.lr = 1e-2});
  for (const sc::WorkerPlace& worker : cluster.workers()) {
    std::cout << "rank " << worker.rank.value << " is process " << worker.process << '\n';
  }
  for (int i = 0; i < 100; ++i) {
    sc::StepFuture step = trainer.step({x}, {y});
    if (i % 20 == 19) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
