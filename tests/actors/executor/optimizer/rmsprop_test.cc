#include "stagecraft/actors/executor/optimizer/rmsprop.h"

#include "stagecraft/tests/conformance/optimizer_conformance.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using torch::optim::RMSpropOptions;

const testing::OptimizerCases kRMSpropCases{
    testing::against<torch::optim::RMSprop>(
        "rmsprop", RMSprop{.lr = 1e-2}, RMSpropOptions(1e-2), /*same_bits=*/true),
    testing::against<torch::optim::RMSprop>(
        "rmsprop, all set",
        RMSprop{1e-2, 0.9, 1e-3, 0.1, 0.8, true},
        RMSpropOptions(1e-2).alpha(0.9).eps(1e-3).momentum(0.8).centered(true),
        /*same_bits=*/true)};

TEST_CASE("the defaults of RMSprop are those of LibTorch's class", "[executor][optimizer]") {
  const RMSpropOptions theirs;
  CHECK(RMSprop{}.lr == theirs.lr());
  CHECK(RMSprop{}.alpha == theirs.alpha());
  CHECK(RMSprop{}.eps == theirs.eps());
  CHECK(RMSprop{}.weight_decay == theirs.weight_decay());
  CHECK(RMSprop{}.momentum == theirs.momentum());
  CHECK(RMSprop{}.centered == theirs.centered());
}

TEST_CASE("RMSprop keeps a tensor more with momentum and with centered", "[executor][optimizer]") {
  using Names = std::vector<std::string>;
  CHECK(state_names(RMSprop{}) == Names{"square_avg"});
  CHECK(state_names(RMSprop{.centered = true}) == Names{"square_avg", "grad_avg"});
  CHECK(state_names(RMSprop{.momentum = 0.5, .centered = true}) ==
        Names{"square_avg", "momentum_buffer", "grad_avg"});
}

}  // namespace
}  // namespace stagecraft
