#include "stagecraft/actors/executor/optimizer/adam.h"

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using torch::optim::AdamOptions;

const testing::OptimizerCases kAdamCases{
    testing::against<torch::optim::Adam>("adam", Adam{.lr = 1e-2}, AdamOptions(1e-2)),
    testing::against<torch::optim::Adam>(
        "adam, all set",
        Adam{1e-2, 0.8, 0.95, 1e-3, 0.1, true},
        AdamOptions(1e-2).betas({0.8, 0.95}).eps(1e-3).amsgrad(true))};

TEST_CASE("the defaults of Adam are those of LibTorch's class", "[executor][optimizer]") {
  const AdamOptions theirs;
  CHECK(Adam{}.lr == theirs.lr());
  CHECK(std::make_tuple(Adam{}.beta1, Adam{}.beta2) == theirs.betas());
  CHECK(Adam{}.eps == theirs.eps());
  CHECK(Adam{}.weight_decay == theirs.weight_decay());
  CHECK(Adam{}.amsgrad == theirs.amsgrad());
}

TEST_CASE("Adam keeps two moments, and a third tensor with amsgrad", "[executor][optimizer]") {
  CHECK(state_names(Adam{}) == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(state_names(Adam{.amsgrad = true}) ==
        std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
}

}  // namespace
}  // namespace stagecraft
