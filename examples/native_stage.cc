/// Trains a model whose middle no tracer can take: how long its loop runs depends on values. It
/// stays C++ and runs on its rank, as written. With an argument the ranks are processes.

#include <iostream>

#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;

/// Applies one layer until its results no longer change.
struct Equilibrium : torch::nn::Module {
  torch::nn::Linear layer{register_module("layer", torch::nn::Linear(32, 32))};

  torch::Tensor forward(torch::Tensor x) {
    auto h = torch::zeros_like(x);
    for (int i = 0; i < 50; ++i) {
      auto next = torch::tanh(x + 0.3 * layer(h));
      if ((next - h).abs().max().item<float>() < 1e-3) {
        return next;
      }
      h = next;
    }
    return h;
  }
};

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 32))};
  std::shared_ptr<Equilibrium> middle = register_module("middle", std::make_shared<Equilibrium>());
  torch::nn::Linear out{register_module("out", torch::nn::Linear(32, 1))};

  torch::Tensor forward(torch::Tensor x) {
    auto h = sc::stage("in", in, x);
    h = sc::native_stage("equilibrium", middle, h);
    return sc::stage("out", out, h);
  }
};

int main(int argc, char** argv) {
  sc::register_native_stage("equilibrium", [] { return std::make_shared<Equilibrium>(); });
  if (sc::is_worker(argc, argv)) {
    return sc::worker_main(argc, argv);
  }
  torch::manual_seed(0);
  Net net;
  auto x = torch::randn({64, 8});
  auto y = x.square().sum(1, /*keepdim=*/true);
  auto program =
      sc::compile(net, {.inputs = {x}, .labels = {y}, .loss = torch::mse_loss, .microbatches = 4});
  auto cluster =
      argc > 1 ? sc::Cluster::spawn(3, {.program = "/proc/self/exe"}) : sc::Cluster::local(3);
  sc::Trainer trainer(cluster, program, "1f1b", sc::AdamW{.lr = 1e-2});
  for (int i = 1; i <= 40; ++i) {
    std::cout << "step " << i << "  loss " << trainer.step(x, y).get().mean_loss << '\n';
  }
}
