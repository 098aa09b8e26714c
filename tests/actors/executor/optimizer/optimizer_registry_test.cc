/// Tests the functions over all optimizers: names, settings, and what they refuse.
#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"

#include <cmath>
#include <limits>

#include <torch/torch.h>

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("OT-2: an optimizer keeps its number in a rank's setup", "[executor][optimizer]") {
  // Append a new optimizer: ranks of other programs know these by number.
  CHECK(Optimizer(AdamW{}).index() == 0);
  CHECK(Optimizer(Sgd{}).index() == 1);
  CHECK(Optimizer(Adam{}).index() == 2);
  CHECK(Optimizer(Adagrad{}).index() == 3);
  CHECK(Optimizer(RMSprop{}).index() == 4);
  CHECK(Optimizer(CustomOptimizer{}).index() == kOptimizers.size());  // it does not travel
}

TEST_CASE("OT-1: the table says the settings of every record, with their defaults",
          "[executor][optimizer]") {
  std::map<std::string_view, std::string_view> about;
  for (const OptimizerInfo& info : kOptimizers) {
    INFO(info.name);
    const Optimizer optimizer = optimizer_named(info.name).value();
    const std::vector<OptimizerSetting> settings = settings_of(optimizer);
    REQUIRE(settings.size() == info.settings.size());
    REQUIRE(settings.size() == info.defaults.size());
    for (std::size_t s = 0; s < settings.size(); ++s) {
      CHECK(settings[s].name == info.settings[s].name);
      CHECK(settings[s].value == info.defaults[s]);
      // A setting of one name is one option of a command, with one text.
      CHECK(about.emplace(settings[s].name, info.settings[s].about).first->second ==
            info.settings[s].about);
      Optimizer changed = optimizer;
      const double value = info.settings[s].range == SettingRange::Switch ? 1.0 : 0.25;
      CHECK(set_setting(changed, settings[s].name, value));
      CHECK(settings_of(changed)[s].value == value);
    }
  }
}

TEST_CASE("each optimizer is found by its name in checkpoints, with its settings",
          "[executor][optimizer]") {
  for (const OptimizerInfo& info : kOptimizers) {
    INFO(info.name);
    Optimizer optimizer = optimizer_named(info.name).value();
    CHECK(optimizer_name(optimizer) == info.name);
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
  CHECK_NOTHROW(check_optimizer(AdamW{.lr = 0.0, .eps = 0.0, .weight_decay = 0.0}));
  CHECK_NOTHROW(check_optimizer(Sgd{.lr = 1e30}));
}

TEST_CASE("a type that the optimizer does not take is found out without touching the parameters",
          "[executor][optimizer]") {
  auto parameters = testing::parameters_like({torch::ones({3}, torch::kLong)}, AdamW{});
  CHECK_THROWS_WITH(try_optimizer(AdamW{}, parameters),
                    ContainsSubstring("does not take parameters of type Long"));
  CHECK(torch::equal(parameters[0].parameter, torch::ones({3}, torch::kLong)));
}

}  // namespace
}  // namespace stagecraft
