#include "stagecraft/actors/executor/step/loss_scale.h"

#include <limits>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("a scale halves when a step is skipped, and doubles after enough updates (LX-1)",
          "[executor][loss-scale]") {
  const LossScaling scaling{.initial = 2.0, .growth_interval = 2};
  LossScale scale = first_scale(scaling);
  CHECK(scale == LossScale{.factor = 2.0});
  scale = after(scale, /*skipped=*/false, scaling);
  CHECK(scale == LossScale{.factor = 2.0, .good = 1});
  scale = after(scale, false, scaling);
  CHECK(scale == LossScale{.factor = 4.0});
  scale = after(after(after(scale, true, scaling), true, scaling), true, scaling);
  CHECK(scale == LossScale{.factor = 1.0, .skipped = 3});
  constexpr double kLargest = 0x1p64;
  CHECK(after({.factor = kLargest, .good = 1}, false, scaling).factor == kLargest);
}

TEST_CASE("a run goes on with the scale of the run before, or keeps it", "[executor][loss-scale]") {
  const LossScale saved{.factor = 16.0, .good = 2, .skipped = 3};
  CHECK(first_scale(LossScaling{}, saved) == saved);
  CHECK(first_scale(std::nullopt, saved) == saved);
  CHECK(first_scale(std::nullopt) == LossScale{});
}

TEST_CASE("impossible scales are known", "[executor][loss-scale][bad-input]") {
  CHECK(is_possible(LossScale{.factor = 4.0, .good = 2, .skipped = 1}, 3));
  CHECK_FALSE(is_possible(LossScale{.factor = 4.0, .good = 3, .skipped = 1}, 3));
  CHECK_FALSE(is_possible(LossScale{.factor = 0.5}, 3));
  CHECK_FALSE(is_possible(LossScale{.factor = 6.0}, 3));
  CHECK_FALSE(is_possible(LossScale{.factor = std::numeric_limits<double>::infinity()}, 3));
  CHECK_FALSE(is_possible(LossScale{.good = -1}, 3));
  CHECK(is_possible(LossScaling{}));
  CHECK_FALSE(is_possible(LossScaling{.initial = 3.0}));
  CHECK_FALSE(is_possible(LossScaling{.growth_interval = 0}));
}

}  // namespace
}  // namespace stagecraft
