/// Compares optimizers with LibTorch's own classes, and tests the registry, parameter groups and
/// learning rates.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/actors/executor/optimizer/learning_rate.h"
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

/// Returns parameters "w0", "w1", ... like these, with their rules.
std::vector<OptimizedParameter> parameters_like(const std::vector<torch::Tensor>& source,
                                                const Optimizer& optimizer,
                                                const std::vector<ParameterGroup>& groups = {}) {
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

/// Holds one of our optimizers, and LibTorch's class with the same settings.
struct Pair {
  std::string name;
  Optimizer ours;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>,
                                                         const std::vector<OptimizedParameter>&)>
      theirs;
};

/// `options` lack rate and decay: each parameter is a group with those of its rule.
template <class Class, class Options>
Pair pair(const std::string& name, const Optimizer& ours, const Options& options) {
  return {name,
          ours,
          [=](std::vector<torch::Tensor> weights, const std::vector<OptimizedParameter>& rules) {
            std::vector<torch::optim::OptimizerParamGroup> groups;
            for (std::size_t i = 0; i < weights.size(); ++i) {
              Options mine = options;
              mine.weight_decay(rules[i].rule.weight_decay);
              groups.emplace_back(std::vector{weights[i]}, std::make_unique<Options>(mine));
            }
            return std::make_unique<Class>(groups, options);
          }};
}

std::vector<Pair> pairs() {
  using namespace torch::optim;
  const auto betas = std::make_tuple(0.8, 0.95);
  const double lr = 1e-2;
  return {
      pair<torch::optim::AdamW>("adamw", stagecraft::AdamW{.lr = lr}, AdamWOptions(lr)),
      pair<torch::optim::AdamW>("adamw, all set",
                                stagecraft::AdamW{lr, 0.8, 0.95, 1e-3, 0.1, true},
                                AdamWOptions(lr).betas(betas).eps(1e-3).amsgrad(true)),
      pair<torch::optim::Adam>("adam", stagecraft::Adam{.lr = lr}, AdamOptions(lr)),
      pair<torch::optim::Adam>("adam, all set",
                               stagecraft::Adam{lr, 0.8, 0.95, 1e-3, 0.1, true},
                               AdamOptions(lr).betas(betas).eps(1e-3).amsgrad(true)),
      pair<SGD>("sgd", Sgd{.lr = lr}, SGDOptions(lr)),
      pair<SGD>("sgd with momentum",
                Sgd{.lr = lr, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
                SGDOptions(lr).momentum(0.9).dampening(0.3)),
      pair<SGD>("sgd, nesterov",
                Sgd{.lr = lr, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
                SGDOptions(lr).momentum(0.9).nesterov(true)),
      pair<torch::optim::Adagrad>("adagrad", stagecraft::Adagrad{.lr = lr}, AdagradOptions(lr)),
      pair<torch::optim::Adagrad>(
          "adagrad, all set",
          stagecraft::Adagrad{lr, 0.2, 0.1, 0.5, 1e-3},
          AdagradOptions(lr).lr_decay(0.2).initial_accumulator_value(0.5).eps(1e-3)),
      pair<torch::optim::RMSprop>("rmsprop", stagecraft::RMSprop{.lr = lr}, RMSpropOptions(lr)),
      pair<torch::optim::RMSprop>(
          "rmsprop, all set",
          stagecraft::RMSprop{lr, 0.9, 1e-3, 0.1, 0.8, true},
          RMSpropOptions(lr).alpha(0.9).eps(1e-3).momentum(0.8).centered(true)),
  };
}

const std::vector<ParameterGroup> kGroups{
    {.match = "w1", .lr = 3e-2, .weight_decay = 0.0},
    {.match = "w?", .lr_scale = 0.5, .weight_decay = 0.3},
};

TEST_CASE("each optimizer follows LibTorch's class, by groups and at changing rates",
          "[executor][optimizer]") {
  const auto dtype = GENERATE(torch::kFloat, torch::kDouble);
  // `weight` is that of several batches together; `clip` is the factor that clips their mean.
  const auto [weight, clip] =
      GENERATE(std::pair(1.0, 1.0), std::pair(3.0, 1.0), std::pair(8.0, 0.37));
  for (const Pair& p : pairs()) {
    CAPTURE(p.name, weight, clip);
    torch::manual_seed(1);
    std::vector<torch::Tensor> weights;
    for (const auto& sizes :
         std::vector<std::vector<std::int64_t>>{{4, 3}, {5}, {3, 2, 7}, {}, {9, 10'001}}) {
      weights.push_back(torch::randn(sizes, dtype).requires_grad_());
    }
    auto ours = parameters_like(weights, p.ours, kGroups);
    const auto theirs = p.theirs(weights, ours);
    for (int step = 1; step <= 5; ++step) {
      const double rate = 1e-2 / step;
      for (std::size_t i = 0; i < weights.size(); ++i) {
        ours[i].gradient.copy_(torch::randn_like(weights[i]));
        weights[i].mutable_grad() = ours[i].gradient / weight * clip;
        theirs->param_groups()[i].options().set_lr(rate_of(ours[i].rule, rate, 1e-2));
      }
      theirs->step();
      apply(p.ours, rate, step, ours, weight / clip);
    }
    // OR-1 holds if the gradients have the same bits.
    const bool exact = std::holds_alternative<RMSprop>(p.ours) && clip == 1.0;
    const double tolerance = exact ? 0.0 : dtype == torch::kFloat ? 3e-6 : 1e-13;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      CAPTURE(i, (ours[i].parameter - weights[i]).abs().max().item<double>());
      CHECK(torch::allclose(ours[i].parameter, weights[i], tolerance, tolerance));
    }
  }
}

TEST_CASE("defaults are those of LibTorch's classes", "[executor][optimizer]") {
  const torch::optim::AdamWOptions adamw;
  CHECK(AdamW{}.lr == adamw.lr());
  CHECK(std::make_tuple(AdamW{}.beta1, AdamW{}.beta2) == adamw.betas());
  CHECK(AdamW{}.eps == adamw.eps());
  CHECK(AdamW{}.weight_decay == adamw.weight_decay());
  CHECK(AdamW{}.amsgrad == adamw.amsgrad());
  const torch::optim::AdamOptions adam;
  CHECK(Adam{}.lr == adam.lr());
  CHECK(std::make_tuple(Adam{}.beta1, Adam{}.beta2) == adam.betas());
  CHECK(Adam{}.eps == adam.eps());
  CHECK(Adam{}.weight_decay == adam.weight_decay());
  CHECK(Adam{}.amsgrad == adam.amsgrad());
  const torch::optim::SGDOptions sgd(0.5);
  CHECK(Sgd{}.momentum == sgd.momentum());
  CHECK(Sgd{}.dampening == sgd.dampening());
  CHECK(Sgd{}.weight_decay == sgd.weight_decay());
  CHECK(Sgd{}.nesterov == sgd.nesterov());
  const torch::optim::AdagradOptions adagrad;
  CHECK(Adagrad{}.lr == adagrad.lr());
  CHECK(Adagrad{}.lr_decay == adagrad.lr_decay());
  CHECK(Adagrad{}.weight_decay == adagrad.weight_decay());
  CHECK(Adagrad{}.initial_accumulator_value == adagrad.initial_accumulator_value());
  CHECK(Adagrad{}.eps == adagrad.eps());
  const torch::optim::RMSpropOptions rmsprop;
  CHECK(RMSprop{}.lr == rmsprop.lr());
  CHECK(RMSprop{}.alpha == rmsprop.alpha());
  CHECK(RMSprop{}.eps == rmsprop.eps());
  CHECK(RMSprop{}.weight_decay == rmsprop.weight_decay());
  CHECK(RMSprop{}.momentum == rmsprop.momentum());
  CHECK(RMSprop{}.centered == rmsprop.centered());
}

TEST_CASE("OR-1: neither company nor place changes a bit of an update", "[executor][optimizer]") {
  for (const Pair& p : pairs()) {
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
      apply(p.ours, 1e-2, step, together);
      for (OptimizedParameter& one : apart) {
        std::vector<OptimizedParameter> alone{one};
        for (torch::Tensor* t : {&alone[0].parameter, &alone[0].gradient}) {
          // Moves three elements into another buffer.
          *t = torch::cat({torch::zeros({3}, t->dtype()), t->flatten()}).narrow(0, 3, t->numel());
        }
        for (torch::Tensor& s : alone[0].state) {
          s = s.flatten();
        }
        apply(p.ours, 1e-2, step, alone);
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
          "[executor][optimizer]") {
  const double divisor = GENERATE(3.0, 8.0, 8.0 / 0.37, 1e-3);
  std::vector<Optimizer> all;
  for (const Pair& p : pairs()) {
    all.push_back(p.ours);
  }
  all.emplace_back(CustomOptimizer{.lr = 1e-2, .state = {"last"}, .update = [](const auto& u) {
                                     u.state[0].copy_(u.gradient);
                                     u.parameter.add_(u.gradient, -u.learning_rate);
                                   }});
  for (const Optimizer& optimizer : all) {
    CAPTURE(optimizer_name(optimizer), divisor);
    torch::manual_seed(3);
    std::vector<torch::Tensor> weights;
    for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16, torch::kHalf}) {
      const bool half = c10::isReducedFloatingType(type);
      if (half && std::holds_alternative<Sgd>(optimizer)) {
        continue;  // LibTorch's kernel reads their momentum as if it were float
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
      apply(optimizer, 1e-2, step, within, divisor);
      apply(optimizer, 1e-2, step, before);
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
          "[executor][optimizer]") {
  // Float rounds the divisor and the quotient by 2^-24 each, together at most 2^-23. Averaging by a
  // weight that is no power of two, and then clipping, rounds three times.
  torch::manual_seed(4);
  const torch::Tensor sum = torch::randn({10'001});
  for (const double weight : {1.0, 3.0, 8.0, 11.5}) {
    for (const double clip : {1.0, 0.37, 1e-4}) {
      CAPTURE(weight, clip);
      std::vector<OptimizedParameter> one = parameters_like({sum}, Sgd{});
      one[0].gradient.copy_(sum);
      apply(Sgd{}, 1e-2, 1, one, weight / clip);
      const torch::Tensor exact = sum.to(torch::kDouble) / weight * clip;
      const torch::Tensor error = (one[0].gradient.to(torch::kDouble) - exact).abs();
      CHECK((error <= exact.abs() * (1.0001 * std::exp2(-23))).all().item<bool>());
    }
  }
}

TEST_CASE("state is what the settings need", "[executor][optimizer]") {
  using Names = std::vector<std::string>;
  CHECK(state_names(Sgd{}).empty());
  CHECK(state_names(Sgd{.momentum = 0.5}) == Names{"momentum"});
  CHECK(state_names(AdamW{}) == Names{"exp_avg", "exp_avg_sq"});
  CHECK(state_names(Adam{.amsgrad = true}) == Names{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
  CHECK(state_names(Adagrad{}) == Names{"sum"});
  CHECK(state_names(RMSprop{}) == Names{"square_avg"});
  CHECK(state_names(RMSprop{.momentum = 0.5, .centered = true}) ==
        Names{"square_avg", "momentum_buffer", "grad_avg"});
  CHECK(state_names(CustomOptimizer{.state = {"mean"}}) == Names{"mean"});
  CHECK(initial_state_value(Adagrad{.initial_accumulator_value = 0.5}) == 0.5);
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
  const LearningRate linear{.kind = LearningRate::Kind::Linear, .warmup = 10, .total_steps = 110};
  CHECK(learning_rate_at(linear, 1.0, 10) == Approx(1.0));
  CHECK(learning_rate_at(linear, 1.0, 60) == Approx(0.5));
  CHECK(learning_rate_at(linear, 1.0, 500) == 0.0);
}

TEST_CASE("the learning rate may be any function of the step", "[executor][optimizer]") {
  const LearningRate halves{.of_step = [](std::int64_t step) { return std::exp2(-step); }};
  CHECK(learning_rate_at(halves, 7.0, 0) == 1.0);
  CHECK(learning_rate_at(halves, 7.0, 3) == 0.125);
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const LearningRate rate{.of_step = [=](std::int64_t) { return wrong; }};
    CHECK_THAT(refusal([&] { (void)learning_rate_at(rate, 1.0, 0); }),
               ContainsSubstring("of_step says is a number from 0 on"));
  }
  CHECK_THAT(refusal([] {
               check_learning_rate({.warmup = 2, .of_step = [](std::int64_t) { return 1.0; }});
             }),
             ContainsSubstring("leave kind and warmup"));
  CHECK_THAT(refusal([] { check_learning_rate({.kind = LearningRate::Kind::Linear}); }),
             ContainsSubstring("a linear learning rate needs total_steps"));
}

TEST_CASE("each optimizer is found by its name in checkpoints, with its settings",
          "[executor][optimizer]") {
  CHECK(optimizer_names() ==
        std::vector<std::string>{"adamw", "sgd", "adam", "adagrad", "rmsprop"});
  for (const std::string& name : optimizer_names()) {
    INFO(name);
    Optimizer optimizer = optimizer_named(name).value();
    CHECK(optimizer_name(optimizer) == name);
    CHECK_NOTHROW(check_optimizer(optimizer));
    CHECK(settings_of(optimizer).front().name == "lr");
    CHECK(set_setting(optimizer, "lr", 0.25));
    CHECK(base_learning_rate(optimizer) == 0.25);
    CHECK(set_setting(optimizer, "weight_decay", 0.75));
    CHECK(base_weight_decay(optimizer) == 0.75);
    CHECK_FALSE(set_setting(optimizer, "Lr", 1.0));
  }
  Optimizer sgd = Sgd{};
  CHECK(set_setting(sgd, "nesterov", 1.0));
  CHECK(std::get<Sgd>(sgd).nesterov);
  CHECK_FALSE(set_setting(sgd, "beta1", 0.5));
  CHECK_FALSE(optimizer_named("lion").has_value());
  CHECK_FALSE(optimizer_named("custom").has_value());
  CHECK(optimizer_name(CustomOptimizer{.name = "lion"}) == "lion");
}

TEST_CASE("settings that cannot train are refused, naming the setting", "[executor][optimizer]") {
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
  CHECK_THROWS_WITH(check_optimizer(RMSprop{.alpha = 1.0}), ContainsSubstring("RMSprop::alpha"));
  CHECK_THROWS_WITH(check_optimizer(Adagrad{.lr_decay = -1.0}),
                    ContainsSubstring("Adagrad::lr_decay is a number from 0 on, not -1"));
  CHECK_THROWS_WITH(check_optimizer(Adam{.beta2 = 1.0}), ContainsSubstring("Adam::beta2"));
  for (const Sgd& sgd :
       {Sgd{.nesterov = true}, Sgd{.momentum = 0.9, .dampening = 0.1, .nesterov = true}}) {
    CHECK_THROWS_WITH(check_optimizer(sgd), ContainsSubstring("nesterov needs a momentum"));
  }
  const auto nothing = [](const CustomUpdate&) {};
  CHECK_THROWS_WITH(check_optimizer(CustomOptimizer{}), ContainsSubstring("update is empty"));
  CHECK_THROWS_WITH(check_optimizer(CustomOptimizer{.name = "", .update = nothing}),
                    ContainsSubstring("name is empty"));
  for (const char* state : {"", "weight", "buffer", "a:b", "twice"}) {
    CHECK_THROWS_WITH(
        check_optimizer(CustomOptimizer{.state = {"twice", state}, .update = nothing}),
        ContainsSubstring("CustomOptimizer::state"));
  }
  CHECK_NOTHROW(check_optimizer(CustomOptimizer{.state = {"a", "b"}, .update = nothing}));
  CHECK_NOTHROW(check_optimizer(AdamW{.lr = 0.0, .eps = 0.0, .weight_decay = 0.0}));
  CHECK_NOTHROW(check_optimizer(Sgd{.lr = 1e30}));
}

TEST_CASE("a type that the optimizer does not take is found out without touching the parameters",
          "[executor][optimizer]") {
  auto parameters = parameters_like({torch::ones({3}, torch::kLong)}, AdamW{});
  CHECK_THROWS_WITH(try_optimizer(AdamW{}, parameters),
                    ContainsSubstring("does not take parameters of type Long"));
  CHECK(torch::equal(parameters[0].parameter, torch::ones({3}, torch::kLong)));
}

TEST_CASE("a custom optimizer is called once for each parameter, with what is its own",
          "[executor][optimizer]") {
  std::vector<std::string> seen;
  const CustomOptimizer signs{
      .lr = 1e-2, .weight_decay = 0.1, .state = {"last"}, .update = [&](const CustomUpdate& u) {
        seen.push_back(
            fmt::format("{} {} {:.3f} {:.1f}", u.name, u.step, u.learning_rate, u.weight_decay));
        u.state[0].copy_(u.gradient);
        u.parameter.add_(u.gradient.sign(), -u.learning_rate);
      }};
  auto parameters = parameters_like({torch::zeros({2}), torch::zeros({2, 2})}, signs, kGroups);
  parameters[0].gradient.fill_(-3.0);
  CHECK_NOTHROW(try_optimizer(signs, parameters));
  CHECK(seen.empty());
  apply(signs, 1e-2, 4, parameters);
  std::ranges::sort(seen);
  CHECK(seen == std::vector<std::string>{"w0 4 0.005 0.3", "w1 4 0.030 0.0"});
  CHECK(torch::equal(parameters[0].state[0], torch::full({2}, -3.0)));
  CHECK(torch::allclose(parameters[0].parameter, torch::full({2}, 0.005)));
}

// ---- parameter groups ---------------------------------------------------------------------------

TEST_CASE("a pattern stands for a whole name", "[executor][groups]") {
  CHECK(matches("*", ""));
  CHECK(matches("*.bias", "layers.0.bias"));
  CHECK(matches("encoder.*", "encoder.0.weight"));
  CHECK(matches("a*b*c", "aXbXbc"));
  CHECK(matches("layer?.weight", "layer1.weight"));
  CHECK(matches("**x**", "x"));
  CHECK_FALSE(matches("encoder", "encoder.weight"));
  CHECK_FALSE(matches("*.bias", "layers.0.bias2"));
  CHECK_FALSE(matches("layer?.weight", "layer.weight"));
  CHECK_FALSE(matches("", "a"));
  CHECK_FALSE(matches("a", ""));
  const std::string many(1000, 'a');
  std::string stars;  // the work is at most the product of the lengths
  for (int i = 0; i < 300; ++i) {
    stars += "*a";
  }
  CHECK_FALSE(matches(stars + "b", many));
  CHECK(matches(stars + "*", many));
}

TEST_CASE("the first group that matches has a parameter, and decay is for whom it is asked",
          "[executor][groups]") {
  const Optimizer adamw = AdamW{.lr = 0.5, .weight_decay = 0.1};
  const std::vector<ParameterGroup> groups{{.match = "head.bias", .lr = 0.25},
                                           {.match = "*.bias", .weight_decay = 0.0},
                                           {.match = "head.*", .lr_scale = 10.0},
                                           {.match = "embed.*", .frozen = true}};
  const auto rule = [&](const char* name, std::int64_t dimensions, DecayOn on = DecayOn::All) {
    return rule_of(groups, on, adamw, name, dimensions);
  };
  CHECK(rule("head.bias", 1).weight_decay == 0.1);
  CHECK(rule("head.bias", 1, DecayOn::Matrices).weight_decay == 0.0);
  CHECK(rule("layer.bias", 1).weight_decay == 0.0);
  CHECK(rule("layer.weight", 2, DecayOn::Matrices).weight_decay == 0.1);
  CHECK(rule("embed.weight", 2).frozen);
  CHECK_FALSE(rule("head.weight", 2).frozen);
  // Rates follow the step's rate; the optimizer's own rate is reached to the bit.
  CHECK(rate_of(rule("head.bias", 1), 0.5, 0.5) == 0.25);
  CHECK(rate_of(rule("head.bias", 1), 0.125, 0.5) == 0.0625);
  CHECK(rate_of(rule("head.weight", 2), 0.125, 0.5) == 1.25);
  CHECK(rate_of(rule("layer.weight", 2), 0.125, 0.5) == 0.125);
}

TEST_CASE("groups that cannot be had are refused, naming the group", "[executor][groups]") {
  const auto refused = [](const ParameterGroup& group, const Optimizer& optimizer = Sgd{}) {
    return refusal([&] { check_groups({group}, optimizer); });
  };
  const double nan = std::nan("");
  CHECK_THAT(refused({.match = ""}), ContainsSubstring("1 to 1000 characters"));
  CHECK_THAT(refused({.match = std::string(1001, '*')}), ContainsSubstring("not of 1001"));
  CHECK_THAT(refused({.match = "a", .lr = -1.0}),
             ContainsSubstring("lr of the parameter group \"a\""));
  CHECK_THAT(refused({.match = "a", .lr_scale = nan}), ContainsSubstring("lr_scale of"));
  CHECK_THAT(refused({.match = "a", .weight_decay = nan}), ContainsSubstring("weight_decay of"));
  CHECK_THAT(refused({.match = "a", .lr = 1.0, .lr_scale = 1.0}),
             ContainsSubstring("lr and lr_scale"));
  CHECK_THAT(refused({.match = "a", .lr = 1.0}, Sgd{.lr = 0.0}),
             ContainsSubstring("give the optimizer one above 0"));
  CHECK_THAT(refused({.match = "a", .weight_decay = 0.0, .frozen = true}),
             ContainsSubstring("frozen and has a rate or a decay"));
  CHECK_THAT(
      refusal([] { check_groups(std::vector<ParameterGroup>(1001, {.match = "*"}), Sgd{}); }),
      ContainsSubstring("at most 1000"));
  CHECK_NOTHROW(check_groups({{.match = "a", .lr = 0.0, .weight_decay = 0.0}}, Sgd{}));

  const std::vector<std::string> names{"encoder.weight", "encoder.bias", "head.weight"};
  const auto unmatched = [&](std::vector<ParameterGroup> groups) {
    return refusal([&] { check_groups_match(groups, names); });
  };
  CHECK_THAT(unmatched({{.match = "encodr.weight"}}),
             ContainsSubstring("no parameter matches \"encodr.weight\"") &&
                 ContainsSubstring("did you mean encoder.weight?"));
  CHECK_THAT(unmatched({{.match = "haed.*"}}),
             ContainsSubstring("the 3 parameters are encoder.weight, "));
  CHECK_THAT(unmatched({{.match = "*"}, {.match = "head.*"}}),
             ContainsSubstring("every parameter that \"head.*\" matches belongs to an earlier"));
  CHECK_NOTHROW(check_groups_match({{.match = "head.*"}, {.match = "*"}}, names));
}

}  // namespace
}  // namespace stagecraft
