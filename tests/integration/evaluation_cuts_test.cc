/// Checks that an evaluation depends neither on the cut of the model nor on the dimension of its
/// rows.
#include <random>

#include <torch/torch.h>

#include "stagecraft/compiler/cut/cut_points.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/integration/models.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/equal_costs.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr std::int64_t kKnownWords = 11, kLength = 5, kDim = 8;

/// Is a small language model: positions are added in place after dropout, the mask in place to the
/// scores, and the head is the embedding.
struct TiedImpl : torch::nn::Module {
  torch::nn::Embedding e{register_module("e", torch::nn::Embedding(kKnownWords, kDim))};
  torch::nn::Embedding at{register_module("at", torch::nn::Embedding(kLength, kDim))};
  torch::Tensor where{register_buffer("where", torch::arange(kLength))};
  torch::Tensor mask{
      register_buffer("mask", torch::full({kLength, kLength}, -1e9).triu(/*diagonal=*/1))};
  torch::nn::ModuleList mixers{register_module("mixers", torch::nn::ModuleList())};
  torch::nn::Dropout dropout{register_module("dropout", torch::nn::Dropout(0.2))};

  TiedImpl() {
    for (int i = 0; i < 6; ++i) {
      mixers->push_back(torch::nn::Linear(kDim, kDim));
    }
  }

  torch::Tensor mixed(int i, const torch::Tensor& x) {
    return mixers[static_cast<std::size_t>(i)]->as<torch::nn::Linear>()->forward(x);
  }

  torch::Tensor forward(const torch::Tensor& words) {
    auto h = dropout(e(words));
    h.add_(at(where));
    for (int layer = 0; layer < 2; ++layer) {
      auto scores = torch::matmul(mixed(3 * layer, h), mixed(3 * layer + 1, h).transpose(1, 2));
      scores.add_(mask);
      auto mixed_in = dropout(torch::matmul(scores.softmax(-1), mixed(3 * layer + 2, h)));
      h = mixed_in.add_(h).relu_();
    }
    return torch::matmul(h, e->weight.t());
  }
};
TORCH_MODULE(Tied);

torch::Tensor words_of(std::int64_t rows, std::uint64_t seed) {
  auto generator = at::detail::createCPUGenerator(seed);
  return torch::randint(kKnownWords, {rows, kLength}, generator);
}

torch::Tensor next_word_loss(torch::Tensor output, torch::Tensor label) {
  return torch::cross_entropy_loss(output.flatten(0, 1), label.flatten());
}

Program tied_program(Tied& model, Cut cut) {
  return compile(model,
                 {.inputs = {words_of(8, 1)},
                  .labels = {words_of(8, 2)},
                  .loss = next_word_loss,
                  .microbatches = 4,
                  .cut = std::move(cut)});
}

void check_evaluates(Tied& model, const Cut& cut) {
  const Program program = tied_program(model, cut);
  const int stages = program.stage_graph().size();
  CAPTURE(stages);
  Trainer trainer(program, "1f1b", Sgd{.lr = 0.1});
  const auto words = words_of(7, 3), next = words_of(7, 4);
  model->eval();
  const auto expected = model->forward(words);
  model->train();
  const auto found = trainer.predict({words});
  REQUIRE(found.size() == 1);
  CHECK(torch::allclose(found[0], expected, 1e-5, 1e-6));
  const double loss = trainer.evaluate({words}, {next});
  CHECK(std::abs(loss - next_word_loss(expected, next).item<double>()) < 1e-5);
  (void)trainer.step({words_of(8, 5)}, {words_of(8, 6)}).get();
}

TEST_CASE(
    "predictions and losses are the module's wherever it is cut, through ties and dropout too",
    "[integration][evaluation]") {
  torch::manual_seed(8);
  Tied model;
  const Program whole = tied_program(model, Cut{});
  const std::vector<std::size_t> points = cut_points(whole.compiled().graph);
  SECTION("balanced") {
    for (const int stages : {2, 3, 4}) {
      check_evaluates(model, Balanced{.stages = stages, .costs = equal_costs(whole)});
    }
  }
  SECTION("between what dropout made and what is added to it") {
    check_evaluates(model, At{"at"});
  }
  SECTION("at random") {
    std::mt19937 random(7);
    for (int i = 0; i < 8; ++i) {
      std::vector<std::size_t> firsts;
      std::sample(
          points.begin() + 1, points.end(), std::back_inserter(firsts), 1 + random() % 3, random);
      At cut{};
      for (const std::size_t first : firsts) {
        cut.places.push_back("op:" + std::to_string(first));
      }
      CAPTURE(cut.places);
      check_evaluates(model, cut);
    }
  }
}

constexpr std::int64_t kSide = 6;

/// Its evaluation has a head, a shift and a counter of its own.
struct TwoHeadedImpl : torch::nn::Module {
  torch::nn::Linear below{register_module("below", torch::nn::Linear(kSide, kSide))};
  torch::nn::Linear above{register_module("above", torch::nn::Linear(kSide, kSide))};
  torch::nn::Linear head{register_module("head", torch::nn::Linear(kSide, 2))};
  torch::nn::Linear spare{register_module("spare", torch::nn::Linear(kSide, 2))};
  torch::Tensor shift{register_buffer("shift", torch::full({2}, 3.0))};
  torch::Tensor asked{register_buffer("asked", torch::zeros(2))};

  torch::Tensor forward(const torch::Tensor& x) {
    const auto h = above(torch::tanh(below(x)));
    return is_training() ? head(h) : spare(h) * shift + asked.add_(1);
  }
};
TORCH_MODULE(TwoHeaded);

torch::Tensor squared_error(torch::Tensor output, torch::Tensor label) {
  return (output - label).square().mean();
}

/// What a module with the trainer's state returns in evaluation mode.
torch::Tensor expected_of(Trainer& trainer, const torch::Tensor& x) {
  TwoHeaded copy;
  trainer.copy_to(copy);
  copy->eval();
  return copy->forward(x);
}

TEST_CASE("evaluation uses what training does not, as the trainer has it, wherever it runs",
          "[integration][evaluation]") {
  torch::manual_seed(9);
  TwoHeaded model;
  const auto x = torch::randn({8, kSide});
  const Program program = compile(model,
                                  {.inputs = {x},
                                   .labels = {torch::randn({8, 2})},
                                   .loss = squared_error,
                                   .microbatches = 4,
                                   .cut = At{"above"}});
  const Cluster cluster = GENERATE(0, 1) == 0 ? Cluster::local(2) : Cluster::spawn(2);
  Trainer trainer(cluster, program, one_f_one_b(2, 4), Sgd{.lr = 0.1});
  const auto check = [&] {
    for (const std::int64_t rows : {8, 5}) {
      const auto asked = torch::randn({rows, kSide}), labels = torch::randn({rows, 2});
      const auto expected = expected_of(trainer, asked);
      for (int turn = 0; turn < 2; ++turn) {  // the counter begins anew
        CHECK(torch::allclose(trainer.predict({asked})[0], expected, 1e-5, 1e-6));
      }
      const double loss = trainer.evaluate({asked}, {labels});
      const double wanted = squared_error(expected, labels).item<double>();
      CHECK(std::abs(loss - wanted) < 1e-5 * (1.0 + wanted));
    }
  };
  check();
  (void)trainer.step({x}, {torch::randn({8, 2})}).get();
  check();
  const Checkpoint before = trainer.checkpoint();
  StateDict other = trainer.state_dict();
  for (auto& [name, tensor] : other) {
    tensor = tensor * 0.5 + 0.25;
  }
  trainer.load_state_dict(other);
  check();
  trainer.load(before);
  check();
}

/// Time first, as recurrent layers are by default, with the last state of each layer beside it.
struct Recurrent : torch::nn::Module {
  torch::nn::GRU rows{
      register_module("rows", torch::nn::GRU(torch::nn::GRUOptions(3, 4).num_layers(2)))};

  std::tuple<torch::Tensor, torch::Tensor> forward(const torch::Tensor& x) {
    return rows(x.transpose(0, 1));
  }
};

TEST_CASE("outputs that have their rows in another dimension are joined there",
          "[integration][evaluation]") {
  const auto model = std::make_shared<Recurrent>();
  const Program program =
      compile(model,
              {.inputs = {torch::randn({8, 4, 3})},
               .loss = [](const torch::Tensor& y,
                          const torch::Tensor& h) { return y.square().mean() + h.mean(); },
               .microbatches = 2});
  Trainer trainer(program, "1f1b", Sgd{});
  const auto x = torch::randn({8, 4, 3});  // as many steps in time as rows of a microbatch
  const auto found = trainer.predict({x});
  const auto [y, h] = model->forward(x);
  REQUIRE(found.size() == 2);
  CHECK(found[0].sizes() == at::IntArrayRef{4, 8, 4});
  CHECK(torch::allclose(found[0], y, 1e-5, 1e-6));
  CHECK(torch::allclose(found[1], h, 1e-5, 1e-6));
  const auto [fewer, last] = model->forward(x.narrow(0, 0, 5));
  CHECK(torch::allclose(trainer.predict({x.narrow(0, 0, 5)})[0], fewer, 1e-5, 1e-6));
}

TEST_CASE("an output without rows is not predicted, and still evaluated",
          "[integration][evaluation]") {
  struct Averaging : torch::nn::Module {
    torch::nn::Linear body{register_module("body", torch::nn::Linear(6, 4))};
    std::vector<torch::Tensor> forward(const torch::Tensor& x) {
      const auto y = body(x);
      return {y, y.mean(0)};
    }
  };
  const auto model = std::make_shared<Averaging>();
  const auto x = torch::randn({8, 6});
  const Program program = compile(
      model,
      {.inputs = {x},
       .loss = [](const torch::Tensor& y, const torch::Tensor&) { return y.square().mean(); },
       .microbatches = 2});
  Trainer trainer(program, "1f1b", Sgd{});
  CHECK_THAT(refusal([&] { (void)trainer.predict({x}); }, Errc::CompileShape),
             ContainsSubstring("output 1") && ContainsSubstring("[4]") &&
                 ContainsSubstring("twice the rows"));
  CHECK(std::abs(trainer.evaluate({x}, {}) - model->body(x).square().mean().item<double>()) < 1e-5);
}

}  // namespace
}  // namespace stagecraft::tests
