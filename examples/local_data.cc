/// Local data: each worker process makes its share of the batches itself, and the driver sends
/// none.

#include <iostream>
#include <memory>

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

/// Returns points and the sums of their squares. Your source would read files, named by `argument`.
struct Squares : sc::StepSource {
  int64_t rows;

  explicit Squares(const std::string& argument) : rows(std::stoll(argument)) {}

  sc::LabeledBatch batch(int64_t number) override {
    auto generator = at::detail::createCPUGenerator(static_cast<uint64_t>(number));
    auto x = torch::randn({rows, 8}, generator);
    return {{x}, {x.square().sum(1, /*keepdim=*/true)}};
  }
};

int main(int argc, char** argv) {
  sc::register_source(
      "squares", [](const std::string& argument) { return std::make_unique<Squares>(argument); });
  if (sc::is_worker(argc, argv)) {
    return sc::worker_main(argc, argv);
  }
  torch::manual_seed(0);
  Net net;
  auto example = Squares("64").batch(0);
  auto loss = [](torch::Tensor output, torch::Tensor label) {
    return torch::mse_loss(output, label);
  };
  auto program = sc::compile(
      net, {.inputs = example.inputs, .labels = example.labels, .loss = loss, .microbatches = 4});
  auto cluster = sc::Cluster::spawn(2, {.program = "/proc/self/exe"});
  sc::Trainer trainer(
      cluster, program, sc::one_f_one_b(program.stage_graph(), 4), sc::AdamW{.lr = 1e-2});
  for (int64_t i = 0; i < 100; ++i) {
    sc::StepFuture step = trainer.step({.source = "squares", .argument = "64", .number = i});
    if (i % 20 == 19) {
      std::cout << "step " << i + 1 << "  loss " << step.get().mean_loss << '\n';
    }
  }
}
