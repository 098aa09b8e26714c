#include <torch/torch.h>

#include "stagecraft/stagecraft.h"

namespace sc = stagecraft;
namespace data = torch::data;

struct Net : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(8, 64))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(64, 1))};

  torch::Tensor forward(torch::Tensor x) {
    auto h = sc::stage("first", [&] { return torch::tanh(in(x)); });
    return sc::stage("second", out, h);
  }
};

struct Squares : data::datasets::Dataset<Squares> {
  torch::Tensor x = torch::randn({640, 8}), y = x.square().sum(1, /*keepdim=*/true);

  data::Example<> get(size_t i) override { return {x[int64_t(i)], y[int64_t(i)]}; }
  std::optional<size_t> size() const override { return 640; }
};

int main() {
  torch::manual_seed(0);
  auto net = std::make_shared<Net>();
  auto loader = data::make_data_loader(Squares().map(data::transforms::Stack<>()), 64);

  auto program = sc::compile(net,
                             {.inputs = {torch::randn({64, 8})},
                              .labels = {torch::randn({64, 1})},
                              .loss = torch::nn::MSELoss(),
                              .microbatches = 4});
  sc::Trainer trainer(program, "1f1b", sc::AdamW{.lr = 1e-2});
  trainer.fit(loader, {.epochs = 20});
  trainer.copy_to(net);
}
