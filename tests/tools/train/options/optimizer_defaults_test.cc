#include "stagecraft/tools/train/options/optimizer_defaults.h"

#include <regex>

#include "stagecraft/actors/executor/optimizer/optimizer_registry.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/train/options/parse_options.h"
#include "stagecraft/tools/train/options/update_rule.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

TEST_CASE("defaults are the record's, but for the usual values of AdamW", "[tools][options]") {
  CHECK(default_setting("adamw", "beta1") == AdamW{}.beta1);
  CHECK(default_setting("adamw", "beta2") == 0.95);
  CHECK(default_setting("adamw", "weight_decay") == 0.1);
  CHECK(default_setting("adam", "beta2") == Adam{}.beta2);
  CHECK(default_setting("adagrad", "eps") == Adagrad{}.eps);
  CHECK(default_setting("rmsprop", "centered") == 0.0);
}

TEST_CASE("an optimizer is made with the defaults of the command and the given settings",
          "[tools][options]") {
  for (const OptimizerInfo& info : kOptimizers) {
    INFO(info.name);
    const Optimizer made = make_optimizer({.name = std::string(info.name), .rate = 0.25});
    for (const auto& [name, value] : settings_of(made)) {
      CHECK(value == (name == "lr" ? 0.25 : default_setting(info.name, name)));
    }
  }
  const auto adamw = std::get<AdamW>(make_optimizer({.settings = {{"beta2", 0.5}}}));
  CHECK(adamw.beta2 == 0.5);
  CHECK(adamw.weight_decay == 0.1);
}

TEST_CASE("help shows whose a setting is, and its default", "[tools][options]") {
  const std::string page = std::get<HelpText>(parse_train_options({"--help"})).text;
  const std::string help = std::regex_replace(page, std::regex("\\s+"), " ");
  CHECK_THAT(help, ContainsSubstring("weight decay [0.1 for adamw, 0 for others]"));
  CHECK_THAT(help, ContainsSubstring("[0.95 for adamw, 0.999 for adam]"));
  CHECK_THAT(help, ContainsSubstring("rmsprop: decay rate of the mean of squared"));
  CHECK_THAT(help, ContainsSubstring("sgd: use Nesterov momentum"));
}

}  // namespace
}  // namespace stagecraft::tools
