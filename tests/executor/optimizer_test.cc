/// Optimizers against LibTorch's own, and the learning-rate schedules.
#include "stagecraft/actors/executor/optimizer.h"

#include <cmath>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Approx;

std::vector<OptimizedParameter> parameters_like(const std::vector<torch::Tensor>& source,
                                                std::size_t states) {
  std::vector<OptimizedParameter> result;
  for (const auto& p : source) {
    OptimizedParameter o{.parameter = p.detach().clone(), .gradient = torch::zeros_like(p)};
    for (std::size_t s = 0; s < states; ++s) {
      o.state.push_back(torch::zeros_like(p));
    }
    result.push_back(std::move(o));
  }
  return result;
}

/// Runs ours and LibTorch's side by side on the same gradients; `reference` has a group without
/// decay for vectors.
void compare(const Optimizer& ours,
             torch::optim::Optimizer& reference,
             std::vector<torch::Tensor>& weights) {
  auto parameters = parameters_like(weights, state_names(ours).size());
  for (int step = 1; step <= 5; ++step) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      parameters[i].gradient.copy_(torch::randn_like(weights[i]));
      weights[i].mutable_grad() = parameters[i].gradient.clone();
    }
    reference.step();
    apply(ours, base_learning_rate(ours), step, parameters);
  }
  for (std::size_t i = 0; i < weights.size(); ++i) {
    CHECK(torch::allclose(parameters[i].parameter, weights[i], 1e-5, 1e-6));
  }
}

TEST_CASE("AdamW follows LibTorch's, without decay on vectors", "[executor][optimizer]") {
  torch::manual_seed(1);
  std::vector<torch::Tensor> weights{torch::randn({4, 3}).requires_grad_(),
                                     torch::randn({5}).requires_grad_()};
  auto options = [](double decay) {
    return std::make_unique<torch::optim::AdamWOptions>(
        torch::optim::AdamWOptions(1e-2).betas({0.9, 0.95}).weight_decay(decay));
  };
  torch::optim::AdamW reference({torch::optim::OptimizerParamGroup({weights[0]}, options(0.1)),
                                 torch::optim::OptimizerParamGroup({weights[1]}, options(0.0))},
                                torch::optim::AdamWOptions(1e-2));
  compare(AdamW{.lr = 1e-2, .weight_decay = 0.1}, reference, weights);
}

TEST_CASE("SGD with momentum follows LibTorch's", "[executor][optimizer]") {
  torch::manual_seed(2);
  std::vector<torch::Tensor> weights{torch::randn({4, 3}).requires_grad_()};
  torch::optim::SGD reference(weights,
                              torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.01));
  compare(Sgd{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01}, reference, weights);
}

TEST_CASE("SGD without momentum keeps no state", "[executor][optimizer]") {
  CHECK(state_names(Sgd{}).empty());
  CHECK(state_names(Sgd{.momentum = 0.5}).size() == 1);
  torch::manual_seed(2);
  std::vector<torch::Tensor> weights{torch::randn({4, 3}).requires_grad_()};
  torch::optim::SGD reference(weights, torch::optim::SGDOptions(0.1));
  compare(Sgd{.lr = 0.1}, reference, weights);
}

TEST_CASE("the learning rate warms up linearly, then stays or falls as half a cosine",
          "[executor][optimizer]") {
  const LearningRate constant{.warmup = 4};
  CHECK(learning_rate_at(constant, 0.8, 0) == Approx(0.2));
  CHECK(learning_rate_at(constant, 0.8, 3) == Approx(0.8));
  CHECK(learning_rate_at(constant, 0.8, 1000) == Approx(0.8));
  const LearningRate cosine{.kind = LearningRate::Kind::Cosine, .warmup = 10, .total_steps = 110};
  CHECK(learning_rate_at(cosine, 1.0, 10) == Approx(1.0));
  CHECK(learning_rate_at(cosine, 1.0, 60) == Approx(0.5));
  CHECK(learning_rate_at(cosine, 1.0, 110) == Approx(0.0).margin(1e-12));
  CHECK(learning_rate_at(cosine, 1.0, 500) == Approx(0.0).margin(1e-12));
}

TEST_CASE("each optimizer has its own name in checkpoints", "[executor][optimizer]") {
  CHECK(optimizer_name(AdamW{}) == "adamw");
  CHECK(optimizer_name(Sgd{.momentum = 0.9}) == "sgd");
}

TEST_CASE("settings that cannot train are refused, naming the setting", "[executor][optimizer]") {
  using Catch::Matchers::ContainsSubstring;
  const double nan = std::nan("");
  const double inf = std::numeric_limits<double>::infinity();
  for (const double lr : {nan, inf, -1.0}) {
    CHECK_THROWS_WITH(check_optimizer(AdamW{.lr = lr}), ContainsSubstring("AdamW::lr"));
    CHECK_THROWS_WITH(check_optimizer(Sgd{.lr = lr}), ContainsSubstring("Sgd::lr"));
  }
  for (const double beta : {nan, -0.1, 1.0, 1.5}) {
    CHECK_THROWS_WITH(check_optimizer(AdamW{.beta1 = beta}), ContainsSubstring("AdamW::beta1"));
    CHECK_THROWS_WITH(check_optimizer(AdamW{.beta2 = beta}), ContainsSubstring("AdamW::beta2"));
  }
  CHECK_THROWS_WITH(check_optimizer(AdamW{.eps = -1e-8}), ContainsSubstring("AdamW::eps"));
  CHECK_THROWS_WITH(check_optimizer(AdamW{.weight_decay = nan}),
                    ContainsSubstring("AdamW::weight_decay"));
  CHECK_THROWS_WITH(check_optimizer(Sgd{.momentum = -0.5}), ContainsSubstring("Sgd::momentum"));
  CHECK_THROWS_WITH(check_optimizer(Sgd{.weight_decay = inf}),
                    ContainsSubstring("Sgd::weight_decay"));
  CHECK_NOTHROW(check_optimizer(AdamW{.lr = 0.0, .eps = 0.0, .weight_decay = 0.0}));
  CHECK_NOTHROW(check_optimizer(Sgd{.lr = 1e30}));
}

TEST_CASE("parameters of several types are updated in one go", "[executor][optimizer]") {
  const auto optimizer =
      GENERATE(Optimizer(AdamW{.lr = 1e-2}), Optimizer(Sgd{.lr = 1e-2, .momentum = 0.9}));
  std::vector<torch::Tensor> weights;
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
    weights.push_back(torch::ones({3, 2}, type));
    weights.push_back(torch::ones({3}, type));
  }
  auto together = parameters_like(weights, state_names(optimizer).size());
  for (OptimizedParameter& p : together) {
    p.gradient.fill_(0.5);
  }
  CHECK_NOTHROW(try_optimizer(optimizer, together));
  apply(optimizer, 1e-2, 1, together);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    auto alone = parameters_like({weights[i]}, state_names(optimizer).size());
    alone[0].gradient.fill_(0.5);
    apply(optimizer, 1e-2, 1, alone);
    CHECK(torch::equal(alone[0].parameter, together[i].parameter));
    CHECK_FALSE(torch::equal(alone[0].parameter, weights[i]));
  }
}

TEST_CASE("a type that the optimizer does not take is found out without touching the parameters",
          "[executor][optimizer]") {
  auto parameters = parameters_like({torch::ones({3}, torch::kLong)}, 2);
  CHECK_THROWS_WITH(try_optimizer(AdamW{}, parameters),
                    Catch::Matchers::ContainsSubstring("does not take parameters of type Long"));
  CHECK(torch::equal(parameters[0].parameter, torch::ones({3}, torch::kLong)));
}

}  // namespace
}  // namespace stagecraft
