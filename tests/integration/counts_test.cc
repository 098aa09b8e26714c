/// Tests what modules count in training steps (count.h).

#include <torch/torch.h>

#include "stagecraft/actors/reference/reference.h"
#include "stagecraft/compiler/native/count.h"
#include "stagecraft/stagecraft.h"
#include "stagecraft/tests/integration/usual_trainer.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr int kCountedMicrobatches = 4;

/// Two stages. Both count the rows that they see, and the first counts its positive numbers.
struct CountingModel : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 3))};
  torch::nn::Linear out{register_module("out", torch::nn::Linear(3, 1))};

  torch::Tensor forward(torch::Tensor x) {
    const auto h = stage("first", [&] {
      return stagecraft::recompute(
          [&](const torch::Tensor& given) {
            const torch::Tensor made = torch::tanh(in(given));
            stagecraft::count("positive", (made > 0).sum(0));
            stagecraft::count("rows", torch::tensor(given.size(0)));
            return made;
          },
          x);
    });
    return stage("second", [&] {
      stagecraft::count("rows", torch::ones({h.size(0)}).sum());
      return out(h);
    });
  }
};

torch::Tensor counting_loss(const torch::Tensor& output, const torch::Tensor& label) {
  return torch::mse_loss(output, label);
}

Program counting_program(const std::shared_ptr<CountingModel>& module) {
  return compile(module,
                 {.inputs = {torch::ones({8, 4})},
                  .labels = {torch::ones({8, 1})},
                  .loss = counting_loss,
                  .microbatches = kCountedMicrobatches});
}

Schedule two_rows(const Program& program) {
  return one_f_one_b(program.stage_graph(), program.microbatches());
}

TEST_CASE("a step has the sums of what its microbatches count on all ranks (UC-1)",
          "[integration][counts]") {
  torch::manual_seed(3);
  const auto module = std::make_shared<CountingModel>();
  const Program program = counting_program(module);
  const torch::Tensor x = torch::randn({8, 4}), y = torch::randn({8, 1});
  const torch::Tensor positive = (torch::tanh(module->in(x)) > 0).sum(0).to(torch::kDouble);
  const std::vector<double> expected(positive.const_data_ptr<double>(),
                                     positive.const_data_ptr<double>() + 3);
  const Cluster cluster = Cluster::local(2);
  Trainer trainer(cluster, program, two_rows(program), Sgd{.lr = 0.1});
  const StepResult result = trainer.step({x}, {y}).get();
  CHECK(result.counts == Counts{{"positive", expected}, {"rows", {16.0}}});
  Reference reference(program, Sgd{.lr = 0.1}, {});
  CHECK(reference.step({x}, {y}).counts == result.counts);

  // The batches of one update count together.
  const StepResult first = trainer.accumulate({x}, {y}).get();
  CHECK(first.counts.at("rows") == std::vector<double>{16.0});
  CHECK(trainer.step({x}, {y}).get().counts.at("rows") == std::vector<double>{32.0});

  CHECK(trainer.evaluate({x}, {y}) > 0.0);  // counts nothing
}

TEST_CASE("copies of a stage count their own samples", "[integration][counts]") {
  const auto module = std::make_shared<CountingModel>();
  const Program program = counting_program(module);
  const Cluster cluster = Cluster::local(4);
  Trainer trainer(cluster,
                  make_execution(program, in_copies(one_f_one_b(2, kCountedMicrobatches / 2), 2)),
                  Sgd{.lr = 0.1});
  const torch::Tensor x = torch::randn({8, 4}), y = torch::randn({8, 1});
  CHECK(trainer.step({x}, {y}).get().counts.at("rows") == std::vector<double>{16.0});
}

TEST_CASE("outside of a step nothing is counted, and wrong counts are refused",
          "[integration][counts]") {
  CHECK_NOTHROW(stagecraft::count("any", torch::ones({3})));
  CHECK_THAT(refusal([] { stagecraft::count("", torch::ones({3})); }), ContainsSubstring("a name"));
  CHECK_THAT(refusal([] { stagecraft::count("undefined", {}); }),
             ContainsSubstring("real numbers"));
  CHECK_THAT(refusal([] { stagecraft::count("c", torch::ones({1}, torch::kComplexFloat)); }),
             ContainsSubstring("real numbers"));
  CHECK_THAT(refusal([] { stagecraft::count("much", torch::ones({kMostCounted + 1})); }),
             ContainsSubstring("found 4097"));
}

/// Counts with one name and two sizes.
struct UnlikeCounts : torch::nn::Module {
  torch::nn::Linear in{register_module("in", torch::nn::Linear(4, 1))};

  torch::Tensor forward(torch::Tensor x) {
    stagecraft::count("rows", x.sum(0));
    stagecraft::count("rows", x.sum());
    return in(x);
  }
};

TEST_CASE("calls with one name and several sizes do not add up, and are refused",
          "[integration][counts]") {
  const std::string why = refusal(
      [] {
        (void)compile(std::make_shared<UnlikeCounts>(),
                      {.inputs = {torch::ones({8, 4})},
                       .labels = {torch::ones({8, 1})},
                       .loss = counting_loss});
      },
      Errc::CompileCapture);
  CHECK_THAT(why, ContainsSubstring("called with 4 numbers and with 1"));
}

}  // namespace
}  // namespace stagecraft::tests
