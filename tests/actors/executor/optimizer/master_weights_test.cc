/// Tests updates through masters: the bits of the same optimizer in float32, rounded, and changes
/// that a half type alone loses.
#include "stagecraft/actors/executor/optimizer/master_weights.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::testing {
namespace {

using Catch::Matchers::ContainsSubstring;

const std::vector<ParameterGroup> kMasterGroups{
    {.match = "w1", .lr = 3e-2, .weight_decay = 0.0},
    {.match = "w?", .lr_scale = 0.5, .weight_decay = 0.3},
};

/// Has several parts in float32 (MWT-3), of which the last ends within a vector.
constexpr std::int64_t kManyElements = (std::int64_t{2} << 20U) + 4099;

/// Returns parameters like these in `type`, with these as masters, and with their state.
std::vector<OptimizedParameter> with_masters(const std::vector<OptimizedParameter>& in_float,
                                             at::ScalarType type) {
  std::vector<OptimizedParameter> made;
  for (const OptimizedParameter& p : in_float) {
    OptimizedParameter& half =
        made.emplace_back(OptimizedParameter{.parameter = p.parameter.to(type),
                                             .gradient = torch::zeros_like(p.parameter, type),
                                             .master = p.parameter.clone(),
                                             .state = {},
                                             .rule = p.rule,
                                             .name = p.name});
    for (const torch::Tensor& state : p.state) {
      half.state.push_back(state.clone());
    }
  }
  return made;
}

void update_halves(const Optimizer& optimizer,
                   double rate,
                   const UpdateNumbers& numbers,
                   std::vector<OptimizedParameter>& parameters,
                   double divisor = 1.0) {
  const bool whole = std::holds_alternative<CustomOptimizer>(optimizer);
  update_through_masters(
      parameters, numbers, whole, [&](std::vector<OptimizedParameter>& in_float) {
        apply(optimizer, rate, numbers, in_float, divisor);
      });
}

TEST_CASE("MWT-1: every optimizer changes a master like a parameter in float32, bit by bit",
          "[executor][optimizer][masters]") {
  const auto type = GENERATE(torch::kBFloat16, torch::kHalf);
  const double divisor = GENERATE(1.0, 8.0 / 0.37);
  for (const OptimizerCase& c : optimizer_cases()) {
    CAPTURE(c.name, divisor);
    torch::manual_seed(11);
    std::vector<torch::Tensor> weights;
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{4, 3}, {5}, {}, {3, 10'001}}) {
      weights.push_back(torch::randn(sizes).to(type).to(torch::kFloat));
    }
    auto in_float = parameters_like(weights, c.ours, kMasterGroups);
    auto halves = with_masters(in_float, type);
    for (int step = 1; step <= 3; ++step) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        halves[i].gradient.copy_(torch::randn_like(weights[i]) * divisor);
        in_float[i].gradient.copy_(halves[i].gradient);
      }
      apply(c.ours, 1e-2 / step, {step}, in_float, divisor);
      update_halves(c.ours, 1e-2 / step, {step}, halves, divisor);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        CAPTURE(i, step);
        CHECK(torch::equal(halves[i].master, in_float[i].parameter));
        CHECK(torch::equal(halves[i].parameter, in_float[i].parameter.to(type)));  // MWT-2
        CHECK(torch::equal(halves[i].gradient, in_float[i].gradient.to(type)));    // OR-2
        for (std::size_t s = 0; s < halves[i].state.size(); ++s) {
          CHECK(torch::equal(halves[i].state[s], in_float[i].state[s]));
        }
      }
    }
  }
}

TEST_CASE("MWT-3: an update of a large parameter in parts has the bits of the whole",
          "[executor][optimizer][masters]") {
  for (const OptimizerCase& c : optimizer_cases()) {
    CAPTURE(c.name);
    torch::manual_seed(12);
    std::vector<torch::Tensor> weights;
    for (const std::int64_t size : {std::int64_t{5}, kManyElements, std::int64_t{7}}) {
      weights.push_back(torch::randn({size}).to(torch::kBFloat16).to(torch::kFloat));
    }
    auto in_float = parameters_like(weights, c.ours);
    auto halves = with_masters(in_float, torch::kBFloat16);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      halves[i].gradient.copy_(torch::randn_like(weights[i]));
      in_float[i].gradient.copy_(halves[i].gradient);
    }
    std::int64_t most = 0;
    int calls = 0;
    const bool whole = c.theirs == nullptr;
    update_through_masters(halves, {1}, whole, [&](std::vector<OptimizedParameter>& parts) {
      std::int64_t elements = 0;
      for (const OptimizedParameter& part : parts) {
        elements += part.gradient.numel();
      }
      most = std::max(most, elements);
      ++calls;
      apply(c.ours, 1e-2, {1}, parts);
    });
    apply(c.ours, 1e-2, {1}, in_float);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CAPTURE(i);
      CHECK(torch::equal(halves[i].master, in_float[i].parameter));
      CHECK(torch::equal(halves[i].parameter, in_float[i].parameter.to(torch::kBFloat16)));
    }
    // The small one before is updated with the first part, the one behind with the last or alone.
    CHECK(calls == (whole ? 2 : 3));
    CHECK(most == 5 + (whole ? kManyElements : std::int64_t{1} << 20U));
  }
}

TEST_CASE("a master follows LibTorch's class on float32 with the widened gradient",
          "[executor][optimizer][masters]") {
  for (const OptimizerCase& c : optimizer_cases()) {
    if (c.theirs == nullptr) {
      continue;
    }
    CAPTURE(c.name);
    torch::manual_seed(13);
    std::vector<torch::Tensor> weights;
    for (const auto& sizes : std::vector<std::vector<std::int64_t>>{{4, 3}, {5}, {9, 1'001}}) {
      weights.push_back(
          torch::randn(sizes).to(torch::kBFloat16).to(torch::kFloat).requires_grad_());
    }
    auto halves = with_masters(parameters_like(weights, c.ours, kMasterGroups), torch::kBFloat16);
    const auto theirs = c.theirs(weights, halves);
    for (int step = 1; step <= 5; ++step) {
      const double rate = 1e-2 / step;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        halves[i].gradient.copy_(torch::randn_like(weights[i]));
        weights[i].mutable_grad() = halves[i].gradient.to(torch::kFloat);
        theirs->param_groups()[i].options().set_lr(rate_of(halves[i].rule, rate, 1e-2));
      }
      theirs->step();
      update_halves(c.ours, rate, {step}, halves);
    }
    const double tolerance = c.same_bits ? 0.0 : 3e-6;  // as in float32 without masters
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CAPTURE(i, (halves[i].master - weights[i]).abs().max().item<double>());
      CHECK(torch::allclose(halves[i].master, weights[i], tolerance, tolerance));
      CHECK(torch::equal(halves[i].parameter, halves[i].master.to(torch::kBFloat16)));
      if (c.same_bits) {
        CHECK(torch::equal(halves[i].parameter, weights[i].to(torch::kBFloat16)));
      }
    }
  }
}

TEST_CASE("changes that bfloat16 loses add up in a master", "[executor][optimizer][masters]") {
  const torch::Tensor ones = torch::ones({3});
  const Optimizer optimizer = GENERATE(Optimizer(AdamW{.weight_decay = 0.0}), Optimizer(Sgd{}));
  auto plain = parameters_like({ones.to(torch::kBFloat16)}, optimizer);
  auto halves = with_masters(parameters_like({ones}, optimizer), torch::kBFloat16);
  for (int step = 1; step <= 50; ++step) {
    for (auto* one : {&plain, &halves}) {
      (*one)[0].gradient.fill_(1.0);
    }
    apply(optimizer, 1e-4, {step}, plain);
    update_halves(optimizer, 1e-4, {step}, halves);
  }
  CHECK(torch::equal(plain[0].parameter, ones.to(torch::kBFloat16)));
  CHECK(torch::allclose(halves[0].master, ones * (1.0 - 50 * 1e-4), 1e-5));
  CHECK(torch::equal(halves[0].parameter, torch::full({3}, 0.99609375, torch::kBFloat16)));
}

TEST_CASE("float32 beside half types is updated as always, and what is frozen stays",
          "[executor][optimizer][masters]") {
  const Optimizer optimizer = AdamW{.lr = 1e-2};
  const std::vector<ParameterGroup> groups{{.match = "w1"}};
  torch::manual_seed(14);
  const std::vector<torch::Tensor> weights{torch::randn({4}), torch::randn({4}), torch::randn({4})};
  auto in_float = parameters_like(weights, optimizer, groups);
  auto mixed = with_masters(in_float, torch::kBFloat16);
  mixed[2] = parameters_like(weights, optimizer, groups)[2];
  for (std::size_t i = 0; i < 3; ++i) {
    mixed[i].gradient.copy_(torch::randn({4}));
    in_float[i].gradient.copy_(mixed[i].gradient);
  }
  mixed[1].rule.group = 0;
  const UpdateNumbers numbers{.run = 1, .groups = {0}};
  const torch::Tensor frozen = mixed[1].gradient.clone();
  update_halves(optimizer, 1e-2, numbers, mixed, 4.0);
  apply(optimizer, 1e-2, {1}, in_float, 4.0);
  CHECK(torch::equal(mixed[0].master, in_float[0].parameter));
  CHECK(torch::equal(mixed[1].master, weights[1]));
  CHECK(torch::equal(mixed[1].parameter, weights[1].to(torch::kBFloat16)));
  CHECK(torch::equal(mixed[1].gradient, frozen / 4.0));
  CHECK(torch::equal(mixed[2].parameter, in_float[2].parameter));
}

TEST_CASE("masters without a parameter in a half type are refused, naming the option",
          "[executor][optimizer][masters]") {
  const auto tensor = [](at::ScalarType type, bool trains) {
    return NamedTensor{"w", torch::zeros({2}, type).requires_grad_(trains)};
  };
  const auto refused = [](const std::vector<NamedTensor>& parameters) {
    return refusal([&] { check_master_weights(parameters); });
  };
  CHECK_THAT(refused({tensor(torch::kFloat, true)}),
             ContainsSubstring("master_weights") && ContainsSubstring("leave it out"));
  CHECK_THAT(refused({tensor(torch::kDouble, true), tensor(torch::kBFloat16, false)}),
             ContainsSubstring("none that trains"));
  CHECK_NOTHROW(check_master_weights({tensor(torch::kFloat, true), tensor(torch::kHalf, true)}));
}

}  // namespace
}  // namespace stagecraft::testing
