#include "stagecraft/actors/executor/optimizer/learning_rate.h"

#include <cmath>
#include <limits>
#include <string>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Approx;
using Catch::Matchers::ContainsSubstring;

TEST_CASE("the learning rate warms up linearly, then stays or falls as half a cosine",
          "[executor][rate]") {
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

TEST_CASE("a wsd rate stays after its warm-up and falls in its last steps alone",
          "[executor][rate]") {
  const LearningRate wsd{
      .kind = LearningRate::Kind::Wsd, .warmup = 10, .total_steps = 110, .decay = 20};
  CHECK(learning_rate_at(wsd, 1.0, 4) == Approx(0.5));
  for (const std::int64_t step : {10, 50, 90}) {
    CHECK(learning_rate_at(wsd, 0.7, step) == 0.7);
  }
  CHECK(learning_rate_at(wsd, 1.0, 91) == Approx(0.95));
  CHECK(learning_rate_at(wsd, 1.0, 100) == Approx(0.5));
  CHECK(learning_rate_at(wsd, 1.0, 110) == 0.0);
  CHECK(learning_rate_at(wsd, 1.0, 500) == 0.0);
  const auto refused = [](const LearningRate& rate) {
    return refusal([&] { check_learning_rate(rate); });
  };
  using Kind = LearningRate::Kind;
  CHECK_NOTHROW(check_learning_rate(wsd));
  CHECK_THAT(refused({.kind = Kind::Wsd, .decay = 5}),
             ContainsSubstring("a wsd learning rate needs total_steps"));
  CHECK_THAT(refused({.kind = Kind::Wsd, .total_steps = 9}), ContainsSubstring("set both"));
  CHECK_THAT(refused({.kind = Kind::Linear, .total_steps = 9, .decay = 5}),
             ContainsSubstring("no other kind has one"));
  for (const std::int64_t decay : {-1, 8}) {
    CHECK_THAT(refused({.kind = Kind::Wsd, .warmup = 2, .total_steps = 9, .decay = decay}),
               ContainsSubstring("(2 and 9), not " + std::to_string(decay)));
  }
}

TEST_CASE("the learning rate may be any function of the step", "[executor][rate]") {
  const LearningRate halves{.of_step = [](std::int64_t step) { return std::exp2(-step); }};
  CHECK(learning_rate_at(halves, 7.0, 0) == 1.0);
  CHECK(learning_rate_at(halves, 7.0, 3) == 0.125);
  for (const double wrong : {-1.0, std::nan(""), std::numeric_limits<double>::infinity()}) {
    const LearningRate rate{.of_step = [=](std::int64_t) { return wrong; }};
    CHECK_THAT(refusal([&] { (void)learning_rate_at(rate, 1.0, 0); }),
               ContainsSubstring("of_step returns is a number from 0 on"));
  }
  CHECK_THAT(refusal([] {
               check_learning_rate({.warmup = 2, .of_step = [](std::int64_t) { return 1.0; }});
             }),
             ContainsSubstring("leave kind and warmup"));
  CHECK_THAT(refusal([] { check_learning_rate({.kind = LearningRate::Kind::Linear}); }),
             ContainsSubstring("a linear learning rate needs total_steps"));
}

}  // namespace
}  // namespace stagecraft
