/// Tests programs as their authors write them: correct programs train, and wrong use gets an error
/// of one sentence.
#include <torch/torch.h>

#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"
#include "stagecraft/tests/support/waiting.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Returns two stages without a class of their own.
torch::nn::Sequential chain() {
  struct MarkedImpl : torch::nn::Module {
    std::string name;
    torch::nn::Linear linear;
    MarkedImpl(std::string n, int in, int out) : name(std::move(n)), linear(in, out) {
      register_module("linear", linear);
    }
    torch::Tensor forward(torch::Tensor x) { return torch::tanh(stage(name, linear, x)); }
  };
  torch::manual_seed(2);
  return torch::nn::Sequential(std::make_shared<MarkedImpl>("one", 3, 4),
                               std::make_shared<MarkedImpl>("two", 4, 2));
}

TEST_CASE("a Sequential and a loss module are trained as they are", "[integration][embedding]") {
  torch::nn::Sequential model = chain();
  const auto x = torch::randn({4, 3});
  const auto y = torch::randn({4, 2});
  torch::nn::MSELoss loss;
  const Program program =
      compile(model, {.inputs = {x}, .labels = {y}, .loss = loss, .microbatches = 1});
  Trainer trainer(Cluster::local(2),
                  program,
                  gpipe(program.stage_graph(), program.microbatches()),
                  Sgd{.lr = 0.1});
  torch::optim::SGD plain(model->parameters(), 0.1);
  for (int i = 0; i < 3; ++i) {
    const auto expected = loss(model->forward(x), y);
    CHECK(trainer.step({x}, {y}).get().mean_loss == expected.item<double>());
    plain.zero_grad();
    expected.backward();
    plain.step();
  }
  const StateDict trained = trainer.state_dict();
  REQUIRE(trained.size() == 4);
  for (const auto& [name, weight] : trained) {
    CHECK(torch::equal(weight, model->named_parameters()[name]));
  }
}

TEST_CASE("a loss of the output alone is trained without labels", "[integration][embedding]") {
  torch::nn::Sequential model = chain();
  const auto x = torch::randn({4, 3});
  const auto loss = [](torch::Tensor output) { return output.square().mean(); };
  const Program program = compile(model, {.inputs = {x}, .loss = loss, .microbatches = 2});
  Trainer trainer(Cluster::local(2),
                  program,
                  one_f_one_b(program.stage_graph(), program.microbatches()),
                  Sgd{.lr = 0.1});
  const double first = trainer.step({x}, {}).get().mean_loss;
  CHECK(trainer.evaluate({x}, {}) < first);
}

TEST_CASE("PR-1: trainers start from the weights the module had when compiled",
          "[integration][embedding]") {
  torch::nn::Sequential model = chain();
  const auto x = torch::randn({4, 3});
  const auto loss = [](torch::Tensor output) { return output.square().mean(); };
  const Program program = compile(model, {.inputs = {x}, .loss = loss, .microbatches = 2});
  StateDict before;
  {
    const torch::NoGradGuard no_grad;
    for (auto& item : model->named_parameters()) {
      before.emplace_back(item.key(), item.value().clone());
      item.value().zero_();
    }
  }
  model->to(torch::kDouble);
  Trainer trainer(Cluster::local(2),
                  program,
                  gpipe(program.stage_graph(), program.microbatches()),
                  Sgd{.lr = 0.1});
  CHECK(same_bits(trainer.state_dict(), before));
}

TEST_CASE("a cluster that was moved from is still one", "[integration][embedding]") {
  const Program program = make_program();
  Cluster cluster = Cluster::local(2);
  const Cluster moved = std::move(cluster);
  CHECK(moved.ranks() == 2);
  CHECK(cluster.ranks() == 2);  // NOLINT(bugprone-use-after-move): this is what the test tests
  Trainer trainer(cluster, program, make_schedule("gpipe", program), AdamW{});
  const Data batch = data(0);
  CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
}

TEST_CASE(
    "a batch that no stage could compute with is refused by step, evaluate and the reference alike",
    "[integration][embedding]") {
  const Program program = make_program();
  Trainer trainer(Cluster::local(2), program, make_schedule("gpipe", program), AdamW{});
  Reference reference(program, AdamW{}, {});
  const Data good = data(0);
  const at::Tensor tokens = good.inputs[0].tensor;
  const at::Tensor misfits[] = {at::Tensor(), tokens.to_sparse(), tokens.to(at::kMeta)};
  const Batch wrong{misfits[GENERATE(0, 1, 2)]};
  for (const auto& [inputs, labels] :
       {std::pair(wrong, good.labels), std::pair(good.inputs, wrong)}) {
    const std::string from_step = refusal([&] { (void)trainer.step(inputs, labels); });
    CHECK(refusal([&] { (void)trainer.evaluate(inputs, labels); }) == from_step);
    CHECK(refusal([&] { (void)reference.step(inputs, labels); }) == from_step);
    CHECK_THAT(from_step, ContainsSubstring("tensor 0 is"));
  }
  CHECK(trainer.step(good.inputs, good.labels).get().step == 1);
}

TEST_CASE("a step may be made in inference mode, and in a scope without gradients",
          "[integration][embedding]") {
  const Program program = make_program();
  Trainer trainer(Cluster::local(2), program, make_schedule("gpipe", program), AdamW{});
  Trainer undisturbed(Cluster::local(2), program, make_schedule("gpipe", program), AdamW{});
  const Data batch = data(0);
  {
    const c10::InferenceMode inference;
    CHECK(trainer.step(batch.inputs, batch.labels).get().step == 1);
  }
  {
    const at::NoGradGuard no_grad;
    CHECK(trainer.step(batch.inputs, batch.labels).get().step == 2);
  }
  (void)undisturbed.step(batch.inputs, batch.labels);
  (void)undisturbed.step(batch.inputs, batch.labels);
  CHECK(same_bits(trainer.state_dict(), undisturbed.state_dict()));
}

}  // namespace
}  // namespace stagecraft::tests
