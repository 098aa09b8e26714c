/// Runs the contract of optimizers for every one of the table, at all settings of its test.
#include "stagecraft/tests/conformance/optimizer_conformance.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "stagecraft/actors/executor/stage/stage_buckets.h"
#include "stagecraft/actors/executor/stage/stage_runtime.h"
#include "stagecraft/compiler/compile.h"
#include "stagecraft/compiler/program/compiled_program.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/modules.h"

namespace stagecraft::testing {

std::vector<OptimizedParameter> parameters_like(const std::vector<torch::Tensor>& source,
                                                const Optimizer& optimizer,
                                                const std::vector<ParameterGroup>& groups) {
  std::vector<OptimizedParameter> result;
  for (const auto& p : source) {
    const std::string name = "w" + std::to_string(result.size());
    OptimizedParameter o{.parameter = p.detach().clone(),
                         .gradient = torch::zeros_like(p),
                         .state = {},
                         .rule = rule_of(groups, DecayOn::All, optimizer, name, p.dim()),
                         .name = name};
    for (std::size_t s = 0; s < state_names(optimizer).size(); ++s) {
      o.state.push_back(torch::full_like(p, initial_state_value(optimizer)));
    }
    result.push_back(std::move(o));
  }
  return result;
}

namespace {

const std::vector<ParameterGroup> kConformanceGroups{
    {.match = "w1", .lr = 3e-2, .weight_decay = 0.0},
    {.match = "w?", .lr_scale = 0.5, .weight_decay = 0.3},
};

TEST_CASE("every optimizer of the table is in this suite", "[executor][optimizer][conformance]") {
  std::set<std::string> tested;
  for (const OptimizerCase& c : optimizer_cases()) {
    tested.emplace(optimizer_name(c.ours));
  }
  for (const OptimizerInfo& info : kOptimizers) {
    const std::string name(info.name);
    INFO(name << ": add its cases in tests/actors/executor/optimizer/" << name << "_test.cc");
    CHECK(tested.contains(name));
  }
}

TEST_CASE("each optimizer follows LibTorch's class, by groups and at changing rates",
          "[executor][optimizer][conformance]") {
  const auto dtype = GENERATE(torch::kFloat, torch::kDouble);
  // `weight` is that of several batches together; `clip` is the factor that clips their mean.
  const auto [weight, clip] =
      GENERATE(std::pair(1.0, 1.0), std::pair(3.0, 1.0), std::pair(8.0, 0.37));
  for (const OptimizerCase& p : optimizer_cases()) {
    if (p.theirs == nullptr) {
      continue;
    }
    CAPTURE(p.name, weight, clip);
    torch::manual_seed(1);
    std::vector<torch::Tensor> weights;
    for (const auto& sizes :
         std::vector<std::vector<std::int64_t>>{{4, 3}, {5}, {3, 2, 7}, {}, {9, 10'001}}) {
      weights.push_back(torch::randn(sizes, dtype).requires_grad_());
    }
    auto ours = parameters_like(weights, p.ours, kConformanceGroups);
    const auto theirs = p.theirs(weights, ours);
    for (int step = 1; step <= 5; ++step) {
      const double rate = 1e-2 / step;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        ours[i].gradient.copy_(torch::randn_like(weights[i]));
        weights[i].mutable_grad() = ours[i].gradient / weight * clip;
        theirs->param_groups()[i].options().set_lr(rate_of(ours[i].rule, rate, 1e-2));
      }
      theirs->step();
      apply(p.ours, rate, {step}, ours, weight / clip);
    }
    // OR-1 holds if the gradients have the same bits.
    const bool exact = p.same_bits && clip == 1.0;
    const double tolerance = exact ? 0.0 : dtype == torch::kFloat ? 3e-6 : 1e-13;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CAPTURE(i, (ours[i].parameter - weights[i]).abs().max().item<double>());
      CHECK(torch::allclose(ours[i].parameter, weights[i], tolerance, tolerance));
    }
  }
}

TEST_CASE("OR-1: neither company nor place changes a bit of an update",
          "[executor][optimizer][conformance]") {
  for (const OptimizerCase& p : optimizer_cases()) {
    INFO(p.name);
    torch::manual_seed(2);
    std::vector<torch::Tensor> weights;
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      weights.push_back(torch::randn({9, 5}).to(type));
      weights.push_back(torch::randn({67}).to(type));
    }
    auto together = parameters_like(weights, p.ours);
    auto apart = parameters_like(weights, p.ours);
    CHECK_NOTHROW(try_optimizer(p.ours, together));
    for (int step = 1; step <= 2; ++step) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        together[i].gradient.copy_(torch::randn_like(weights[i]));
        apart[i].gradient = together[i].gradient.clone();
      }
      apply(p.ours, 1e-2, {step}, together);
      for (OptimizedParameter& one : apart) {
        std::vector<OptimizedParameter> alone{one};
        for (torch::Tensor* t : {&alone[0].parameter, &alone[0].gradient}) {
          // Moves three elements into another buffer.
          *t = torch::cat({torch::zeros({3}, t->dtype()), t->flatten()}).narrow(0, 3, t->numel());
        }
        for (torch::Tensor& s : alone[0].state) {
          s = s.flatten();
        }
        apply(p.ours, 1e-2, {step}, alone);
        one.parameter.copy_(alone[0].parameter.view_as(one.parameter));
      }
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(torch::equal(apart[i].parameter, together[i].parameter));
      CHECK_FALSE(torch::equal(apart[i].parameter, weights[i]));
    }
  }
}

/// In half types squares may become zero, and dividing by them gives NaN.
bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return ((a == b) | (a.isnan() & b.isnan())).all().item<bool>();
}

TEST_CASE("OR-2: an update divides gradients as a pass of its own would, for every optimizer",
          "[executor][optimizer][conformance]") {
  const double divisor = GENERATE(3.0, 8.0, 8.0 / 0.37, 1e-3);
  for (const auto& [name, optimizer, theirs, same_bits, takes_half] : optimizer_cases()) {
    CAPTURE(name, divisor);
    torch::manual_seed(3);
    std::vector<torch::Tensor> weights;
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      if (c10::isReducedFloatingType(type) && !takes_half) {
        continue;
      }
      weights.push_back(torch::randn({7, 10'001}).to(type));
      weights.push_back(torch::randn({67}).to(type));
    }
    auto within = parameters_like(weights, optimizer);
    auto before = parameters_like(weights, optimizer);
    for (int step = 1; step <= 2; ++step) {
      for (std::size_t i = 0; i < weights.size(); ++i) {
        within[i].gradient.copy_(torch::randn_like(weights[i]) * divisor);
        before[i].gradient = within[i].gradient / divisor;
      }
      apply(optimizer, 1e-2, {step}, within, divisor);
      apply(optimizer, 1e-2, {step}, before);
    }
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CHECK(torch::equal(within[i].gradient, before[i].gradient));
      CHECK(same(within[i].parameter, before[i].parameter));
      for (std::size_t s = 0; s < within[i].state.size(); ++s) {
        CHECK(same(within[i].state[s], before[i].state[s]));
      }
    }
  }
}

TEST_CASE("averaging and clipping at once is as near to the exact gradient as one after the other",
          "[executor][optimizer][conformance]") {
  // Float rounds the divisor and the quotient by 2^-24 each, together at most 2^-23. Averaging by a
  // weight that is no power of two, and then clipping, rounds three times.
  torch::manual_seed(4);
  const torch::Tensor sum = torch::randn({10'001});
  for (const double weight : {1.0, 3.0, 8.0, 11.5}) {
    for (const double clip : {1.0, 0.37, 1e-4}) {
      CAPTURE(weight, clip);
      std::vector<OptimizedParameter> one = parameters_like({sum}, Sgd{});
      one[0].gradient.copy_(sum);
      apply(Sgd{}, 1e-2, {1}, one, weight / clip);
      const torch::Tensor exact = sum.to(torch::kDouble) / weight * clip;
      const torch::Tensor error = (one[0].gradient.to(torch::kDouble) - exact).abs();
      CHECK((error <= exact.abs() * (1.0001 * std::exp2(-23))).all().item<bool>());
    }
  }
}

TEST_CASE("an update continues from saved state with the same bits",
          "[executor][optimizer][conformance]") {
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    torch::manual_seed(5);
    auto unbroken = parameters_like({torch::randn({3, 4}), torch::randn({5})}, c.ours);
    const auto step = [&](std::vector<OptimizedParameter>& parameters, int number) {
      torch::manual_seed(static_cast<std::uint64_t>(100 + number));
      for (OptimizedParameter& p : parameters) {
        p.gradient.copy_(torch::randn_like(p.gradient));
      }
      apply(c.ours, 1e-2, {number}, parameters);
    };
    step(unbroken, 1);
    step(unbroken, 2);
    auto resumed = parameters_like({torch::zeros({3, 4}), torch::zeros({5})}, c.ours);
    for (std::size_t i = 0; i < resumed.size(); ++i) {
      resumed[i].parameter.copy_(unbroken[i].parameter);
      for (std::size_t s = 0; s < resumed[i].state.size(); ++s) {
        resumed[i].state[s].copy_(unbroken[i].state[s]);
      }
    }
    step(unbroken, 3);
    step(resumed, 3);
    for (std::size_t i = 0; i < resumed.size(); ++i) {
      CHECK(torch::equal(resumed[i].parameter, unbroken[i].parameter));
      for (std::size_t s = 0; s < resumed[i].state.size(); ++s) {
        CHECK(torch::equal(resumed[i].state[s], unbroken[i].state[s]));
      }
    }
  }
}

TEST_CASE("weight decay and a rate of 0 do what they say", "[executor][optimizer][conformance]") {
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    const auto updated = [&](const ParameterGroup& group, double rate) {
      auto one = parameters_like({torch::ones({4})}, c.ours, {group});
      one[0].gradient.fill_(-0.25);  // decay that is added to it changes its sign
      apply(c.ours, rate, {1}, one);
      return one[0].parameter;
    };
    const ParameterGroup plain{.match = "*", .weight_decay = 0.0};
    CHECK(torch::equal(updated(plain, 0.0), torch::ones({4})));
    CHECK_FALSE(torch::equal(updated(plain, 1e-2), torch::ones({4})));
    if (c.theirs != nullptr) {  // a callable may ignore the decay
      CHECK_FALSE(
          torch::equal(updated({.match = "*", .weight_decay = 0.5}, 1e-2), updated(plain, 1e-2)));
    }
  }
}

TEST_CASE("a bucket keeps as many bytes of state as the optimizer names tensors",
          "[executor][optimizer][conformance]") {
  Chain module(1);
  const Batch batch{torch::randn({4, 8})};
  const Program program =
      compile(module, {.inputs = batch, .labels = batch, .loss = mean_square, .microbatches = 2});
  const StageProgram& stage = program.compiled().partition.stages[0];
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    const StageBuckets bucket(stage, c.ours);
    const std::vector<std::string> names = state_names(c.ours);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
    std::size_t weights = 0, state = 0;
    for (const NamedTensor& t : bucket.state()) {
      const std::string kind = t.name.substr(0, t.name.find(':'));
      const bool is_weight = kind == "weight";
      CHECK((is_weight || std::ranges::count(names, kind) == 1));
      (is_weight ? weights : state) += t.tensor.nbytes();
      if (!is_weight) {
        CHECK(torch::equal(t.tensor, torch::full_like(t.tensor, initial_state_value(c.ours))));
      }
    }
    CHECK(state == names.size() * weights);
  }
}

TEST_CASE("a frozen parameter has no state and does not change",
          "[executor][optimizer][conformance]") {
  Chain module(1);
  const Batch batch{torch::randn({4, 8})};
  const Program program =
      compile(module, {.inputs = batch, .labels = batch, .loss = mean_square, .microbatches = 2});
  const StageProgram& stage = program.compiled().partition.stages[0];
  for (const OptimizerCase& c : optimizer_cases()) {
    INFO(c.name);
    StageBuckets bucket(stage, c.ours, {.groups = {{.match = "*.bias", .frozen = true}}});
    std::vector<torch::Tensor> gradients;
    for (const torch::Tensor& parameter : bucket.parameters()) {
      gradients.push_back(torch::ones_like(parameter));
    }
    bucket.accumulate(gradients);
    bucket.update(1e-2, {}, {1});
    for (const NamedTensor& t : bucket.state()) {
      const bool is_bias = t.name.ends_with(".bias");
      const bool is_weight = t.name.starts_with("weight:");
      CHECK((!is_bias || is_weight));
      CHECK((!is_weight || t.tensor.any().item<bool>() == !is_bias));
    }
  }
}

TEST_CASE("settings outside their range are refused, naming the record and the setting",
          "[executor][optimizer][conformance]") {
  for (const OptimizerInfo& info : kOptimizers) {
    for (const SettingInfo& setting : info.settings) {
      if (setting.range == SettingRange::Switch) {
        continue;
      }
      std::vector<double> wrong{std::nan(""), -1e-9};
      wrong.push_back(
          setting.range == SettingRange::Share ? 1.0 : std::numeric_limits<double>::infinity());
      for (const double value : wrong) {
        Optimizer optimizer = optimizer_named(info.name).value();
        REQUIRE(set_setting(optimizer, setting.name, value));
        CHECK_THROWS_WITH(check_optimizer(optimizer),
                          Catch::Matchers::ContainsSubstring(std::string(info.record) +
                                                             "::" + std::string(setting.name)));
      }
    }
  }
}

}  // namespace
}  // namespace stagecraft::testing
