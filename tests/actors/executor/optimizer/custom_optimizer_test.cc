#include "stagecraft/actors/executor/optimizer/custom_optimizer.h"

#include <algorithm>

#include <fmt/format.h>
#include <torch/torch.h>

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

// LibTorch has no class for it.
const testing::OptimizerCases kCustomCases{
    {.name = "custom",
     .ours = CustomOptimizer{.lr = 1e-2,
                             .state = {"last"},
                             .update =
                                 [](const CustomUpdate& u) {
                                   u.parameter.add_(u.gradient + u.state[0], -u.learning_rate);
                                   u.state[0].copy_(u.gradient);
                                 }},
     .theirs = nullptr}};

const std::vector<ParameterGroup> kCustomGroups{
    {.match = "w1", .lr = 3e-2, .weight_decay = 0.0},
    {.match = "w?", .lr_scale = 0.5, .weight_decay = 0.3},
};

TEST_CASE("a custom optimizer is called once for each parameter, with that parameter's values",
          "[executor][optimizer]") {
  std::vector<std::string> seen;
  const CustomOptimizer signs{
      .lr = 1e-2, .weight_decay = 0.1, .state = {"last"}, .update = [&](const CustomUpdate& u) {
        seen.push_back(
            fmt::format("{} {} {:.3f} {:.1f}", u.name, u.step, u.learning_rate, u.weight_decay));
        u.state[0].copy_(u.gradient);
        u.parameter.add_(u.gradient.sign(), -u.learning_rate);
      }};
  auto parameters =
      testing::parameters_like({torch::zeros({2}), torch::zeros({2, 2})}, signs, kCustomGroups);
  parameters[0].gradient.fill_(-3.0);
  CHECK_NOTHROW(try_optimizer(signs, parameters));
  CHECK(seen.empty());
  apply(signs, 1e-2, {4}, parameters);
  std::ranges::sort(seen);
  CHECK(seen == std::vector<std::string>{"w0 4 0.005 0.3", "w1 4 0.030 0.0"});
  CHECK(torch::equal(parameters[0].state[0], torch::full({2}, -3.0)));
  CHECK(torch::allclose(parameters[0].parameter, torch::full({2}, 0.005)));
}

TEST_CASE("a custom optimizer needs a callable, a name, and names for its state",
          "[executor][optimizer]") {
  const auto nothing = [](const CustomUpdate&) {};
  CHECK_THROWS_WITH(check_optimizer(CustomOptimizer{}), ContainsSubstring("update is empty"));
  CHECK_THROWS_WITH(check_optimizer(CustomOptimizer{.name = "", .update = nothing}),
                    ContainsSubstring("name is empty"));
  for (const char* state : {"", "weight", "buffer", "master", "average", "a:b", "twice"}) {
    CHECK_THROWS_WITH(
        check_optimizer(CustomOptimizer{.state = {"twice", state}, .update = nothing}),
        ContainsSubstring("CustomOptimizer::state"));
  }
  CHECK_NOTHROW(check_optimizer(CustomOptimizer{.state = {"a", "b"}, .update = nothing}));
  CHECK(state_names(CustomOptimizer{.state = {"mean"}}) == std::vector<std::string>{"mean"});
  CHECK(optimizer_name(CustomOptimizer{.name = "lion"}) == "lion");
}

}  // namespace
}  // namespace stagecraft
