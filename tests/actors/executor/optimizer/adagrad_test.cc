#include "stagecraft/actors/executor/optimizer/adagrad.h"

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using torch::optim::AdagradOptions;

const testing::OptimizerCases kAdagradCases{
    testing::against<torch::optim::Adagrad>("adagrad", Adagrad{.lr = 1e-2}, AdagradOptions(1e-2)),
    testing::against<torch::optim::Adagrad>(
        "adagrad, all set",
        Adagrad{1e-2, 0.2, 0.1, 0.5, 1e-3},
        AdagradOptions(1e-2).lr_decay(0.2).initial_accumulator_value(0.5).eps(1e-3))};

TEST_CASE("the defaults of Adagrad are those of LibTorch's class", "[executor][optimizer]") {
  const AdagradOptions theirs;
  CHECK(Adagrad{}.lr == theirs.lr());
  CHECK(Adagrad{}.lr_decay == theirs.lr_decay());
  CHECK(Adagrad{}.weight_decay == theirs.weight_decay());
  CHECK(Adagrad{}.initial_accumulator_value == theirs.initial_accumulator_value());
  CHECK(Adagrad{}.eps == theirs.eps());
}

TEST_CASE("Adagrad keeps a sum that begins with a setting", "[executor][optimizer]") {
  CHECK(state_names(Adagrad{}) == std::vector<std::string>{"sum"});
  CHECK(initial_state_value(Adagrad{}) == 0.0);
  CHECK(initial_state_value(Adagrad{.initial_accumulator_value = 0.5}) == 0.5);
}

}  // namespace
}  // namespace stagecraft
