#include "stagecraft/actors/executor/optimizer/sgd.h"

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;
using torch::optim::SGD;
using torch::optim::SGDOptions;

/// LibTorch's kernel reads a momentum of half types as if it were float.
testing::OptimizerCase without_half(testing::OptimizerCase of) {
  of.takes_half = false;
  return of;
}

const testing::OptimizerCases kSgdCases{
    testing::against<SGD>("sgd", Sgd{.lr = 1e-2}, SGDOptions(1e-2)),
    without_half(testing::against<SGD>(
        "sgd with momentum",
        Sgd{.lr = 1e-2, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
        SGDOptions(1e-2).momentum(0.9).dampening(0.3))),
    without_half(testing::against<SGD>(
        "sgd, nesterov",
        Sgd{.lr = 1e-2, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true},
        SGDOptions(1e-2).momentum(0.9).nesterov(true)))};

TEST_CASE("the defaults of Sgd are those of LibTorch's class", "[executor][optimizer]") {
  const SGDOptions theirs(0.5);
  CHECK(Sgd{}.momentum == theirs.momentum());
  CHECK(Sgd{}.dampening == theirs.dampening());
  CHECK(Sgd{}.weight_decay == theirs.weight_decay());
  CHECK(Sgd{}.nesterov == theirs.nesterov());
}

TEST_CASE("Sgd keeps nothing without momentum", "[executor][optimizer]") {
  CHECK(state_names(Sgd{}).empty());
  CHECK(state_names(Sgd{.momentum = 0.5}) == std::vector<std::string>{"momentum"});
}

TEST_CASE("nesterov needs a momentum above 0 and no dampening", "[executor][optimizer]") {
  for (const Sgd& sgd :
       {Sgd{.nesterov = true}, Sgd{.momentum = 0.9, .dampening = 0.1, .nesterov = true}}) {
    CHECK_THROWS_WITH(check_optimizer(sgd), ContainsSubstring("Sgd::nesterov needs a momentum"));
  }
}

}  // namespace
}  // namespace stagecraft
