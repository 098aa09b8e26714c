/// Trains its own module in two stages and sees the loss fall.
#include <iostream>

#include <stagecraft/stagecraft.h>
#include <torch/torch.h>

namespace sc = stagecraft;

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 16))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(16, 1))};

  torch::Tensor forward(torch::Tensor x) {
    auto hidden = sc::stage("in", [&] { return torch::tanh(in(x)); });
    return sc::stage("out", out, hidden);
  }
};

int main() {
  torch::manual_seed(1);
  Net net;
  const auto x = torch::randn({16, 4});
  const auto y = x.sum(1, /*keepdim=*/true);
  auto loss = [](torch::Tensor output, torch::Tensor label) {
    return torch::mse_loss(output, label);
  };

  auto program = sc::compile(net, {.inputs = {x}, .labels = {y}, .loss = loss, .microbatches = 4});
  auto schedule = sc::one_f_one_b(program.stage_graph(), 4);
  auto cluster = sc::Cluster::local(2);
  sc::Trainer trainer(cluster, program, schedule, sc::AdamW{.lr = 1e-2});

  const double first = trainer.step({x}, {y}).get().mean_loss;
  double last = first;
  for (int i = 0; i < 20; ++i) {
    last = trainer.step({x}, {y}).get().mean_loss;
  }
  std::cout << "loss " << first << " -> " << last << '\n';
  return last < first ? 0 : 1;
}
