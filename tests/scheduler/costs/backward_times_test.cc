#include "stagecraft/scheduler/costs/backward_times.h"

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft {
namespace {

using Catch::Matchers::ContainsSubstring;

/// Halves that together take 6/5 of the whole, a third of it the input's.
Durations measured_times() {
  return {.forward = 5, .backward = 10, .backward_input = 4, .backward_weight = 8};
}

TEST_CASE("what is stated of a backward is kept, and the rest follows", "[scheduler][costs]") {
  Durations times;
  SECTION("the whole alone is halved") {
    CHECK(set_backward(times, {.whole = 6}, /*known=*/false) == "lacks I and W: each is half of B");
    CHECK(times.backward_input == 3);
    CHECK(times.backward_weight == 3);
  }
  SECTION("one half leaves the other") {
    CHECK(set_backward(times, {.whole = 6, .input = 4}, false) ==
          "lacks W: it is what I leaves of B");
    CHECK(times.backward_weight == 2);
    CHECK(set_backward(times, {.whole = 6, .weight = 6}, false) ==
          "lacks I: it is what W leaves of B");
    CHECK(times.backward_input == 0);
  }
  SECTION("both halves make the whole") {
    CHECK(set_backward(times, {.input = 4, .weight = 1}, false) ==
          "lacks B: it is the sum of I and W");
    CHECK(times.backward == 5);
  }
  SECTION("all three need not add up") {
    CHECK_FALSE(set_backward(times, {.whole = 6, .input = 4, .weight = 4}, false));
    CHECK(times.backward == 6);
    CHECK(times.backward_input == 4);
    CHECK(times.backward_weight == 4);
  }
}

TEST_CASE("times that are known keep their proportion", "[scheduler][costs]") {
  Durations times = measured_times();
  SECTION("to a new whole") {
    CHECK(set_backward(times, {.whole = 20}, /*known=*/true) ==
          "lacks I and W: they divide B in the usual proportion");
    CHECK(times.backward_input == Catch::Approx(8));
    CHECK(times.backward_weight == Catch::Approx(16));
  }
  SECTION("to a new half") {
    CHECK(set_backward(times, {.input = 7}, true) ==
          "lacks B: it has the usual proportion to I and W");
    CHECK(times.backward_weight == 8);
    CHECK(times.backward == Catch::Approx(12.5));
  }
  SECTION("equal halves that take longer than the whole are not half of it") {
    times.backward_input = 8;
    CHECK(set_backward(times, {.whole = 5}, true) ==
          "lacks I and W: they divide B in the usual proportion");
    CHECK(times.backward_input == Catch::Approx(4));
    CHECK(times.backward_weight == Catch::Approx(4));
  }
  SECTION("and nothing stated changes nothing") {
    CHECK_FALSE(set_backward(times, {}, true));
    CHECK(times == measured_times());
  }
  CHECK(times.forward == 5);
}

TEST_CASE("known times of 0 have no proportion", "[scheduler][costs]") {
  Durations times{.forward = 1, .backward = 0, .backward_input = 0, .backward_weight = 0};
  CHECK(set_backward(times, {.whole = 6}, /*known=*/true) == "lacks I and W: each is half of B");
  CHECK(times.backward_input == 3);
}

TEST_CASE("a half that tells too little or too much is refused", "[scheduler][costs][bad-input]") {
  Durations times;
  CHECK_THAT(refusal([&] { (void)set_backward(times, {.input = 2}, /*known=*/false); }),
             ContainsSubstring("I is given without B and without W; give B, or I and W"));
  CHECK_THAT(refusal([&] { (void)set_backward(times, {.weight = 2}, false); }),
             ContainsSubstring("W is given without B and without I"));
  CHECK_THAT(refusal([&] { (void)set_backward(times, {.whole = 6, .input = 6.5}, false); }),
             ContainsSubstring("I is 6.5, which leaves nothing of a backward of 6 for W; give W"));
  // The halves of known times may take 12 of a backward of 10.
  Durations known = measured_times();
  CHECK(set_backward(known, {.whole = 10, .weight = 11}, /*known=*/true).has_value());
  CHECK(known.backward_input == Catch::Approx(1));
  CHECK_THAT(refusal([&] { (void)set_backward(known, {.whole = 10, .weight = 12.5}, true); }),
             ContainsSubstring("W is 12.5"));
}

}  // namespace
}  // namespace stagecraft
