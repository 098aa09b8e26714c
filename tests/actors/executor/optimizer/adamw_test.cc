#include "stagecraft/actors/executor/optimizer/adamw.h"

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using torch::optim::AdamWOptions;

const testing::OptimizerCases kAdamWCases{
    testing::against<torch::optim::AdamW>("adamw", AdamW{.lr = 1e-2}, AdamWOptions(1e-2)),
    testing::against<torch::optim::AdamW>(
        "adamw, all set",
        AdamW{1e-2, 0.8, 0.95, 1e-3, 0.1, true},
        AdamWOptions(1e-2).betas({0.8, 0.95}).eps(1e-3).amsgrad(true))};

TEST_CASE("the defaults of AdamW are those of LibTorch's class", "[executor][optimizer]") {
  const AdamWOptions theirs;
  CHECK(AdamW{}.lr == theirs.lr());
  CHECK(std::make_tuple(AdamW{}.beta1, AdamW{}.beta2) == theirs.betas());
  CHECK(AdamW{}.eps == theirs.eps());
  CHECK(AdamW{}.weight_decay == theirs.weight_decay());
  CHECK(AdamW{}.amsgrad == theirs.amsgrad());
}

TEST_CASE("AdamW keeps two moments, and a third tensor with amsgrad", "[executor][optimizer]") {
  CHECK(state_names(AdamW{}) == std::vector<std::string>{"exp_avg", "exp_avg_sq"});
  CHECK(state_names(AdamW{.amsgrad = true}) ==
        std::vector<std::string>{"exp_avg", "exp_avg_sq", "max_exp_avg_sq"});
}

}  // namespace
}  // namespace stagecraft
