/// Trains with validation data, keeps the best state, ends when it no longer improves, and
/// continues in the middle of an epoch: end the program with Ctrl-C and start it again. Its
/// arguments are a folder for the best state and, in `steps`, the checkpoints, and a number of
/// epochs.

#include <iostream>
#include <memory>
#include <string>

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
  torch::Tensor x, y;

  explicit Squares(int64_t rows) : x(torch::randn({rows, 8})), y(x.square().sum(1, true)) {}
  data::Example<> get(size_t i) override { return {x[int64_t(i)], y[int64_t(i)]}; }
  std::optional<size_t> size() const override { return x.size(0); }
};

int main(int argc, char** argv) {
  const std::string folder = argc > 1 ? argv[1] : "continued_fit";
  torch::manual_seed(0);
  auto loader = data::make_data_loader<data::samplers::RandomSampler>(
      Squares(640).map(data::transforms::Stack<>()), 64);
  auto test = data::make_data_loader<data::samplers::SequentialSampler>(
      Squares(100).map(data::transforms::Stack<>()), 64);

  auto program = sc::compile(std::make_shared<Net>(),
                             {.inputs = {torch::randn({64, 8})},
                              .labels = {torch::randn({64, 1})},
                              .loss = torch::nn::MSELoss(),
                              .microbatches = 4});
  sc::Trainer trainer(program, "1f1b", sc::AdamW{.lr = 1e-2});
  sc::CheckpointFolder checkpoints(folder + "/steps", 2);
  checkpoints.resume(trainer);
  const sc::FitResult result =
      trainer.fit(loader,
                  {.epochs = argc > 2 ? std::stoll(argv[2]) : 50,
                   .on_step =
                       [&](const sc::FitStep& step) {
                         if (step.step % 25 == 0) {
                           (void)checkpoints.save(trainer);
                         }
                       },
                   .validation = {.data = test,
                                  .min_delta = 1e-3,
                                  .patience = 5,
                                  .plateau = sc::Plateau{.factor = 0.5, .patience = 2},
                                  .best_path = folder + "/best.ckpt"},
                   .resume = true});
  if (result.best && !result.best->path.empty()) {
    trainer.load(result.best->path);
    std::cout << "best loss " << result.best->value << " after step " << result.best->step << '\n';
  }
}
