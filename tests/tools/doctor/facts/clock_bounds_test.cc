#include "stagecraft/tools/doctor/facts/clock_bounds.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

TEST_CASE("without a question no difference is certain", "[tools][doctor]") {
  CHECK(ClockBounds{}.certain() == 0);
}

TEST_CASE("a difference within a round trip is not certain", "[tools][doctor]") {
  ClockBounds equal;
  equal.narrow(100, 100, 100);
  CHECK(equal.certain() == 0);
  ClockBounds slow;
  slow.narrow(100, 105, 110);  // the answer may have been given at any time of the ten seconds
  CHECK(slow.low == -5);
  CHECK(slow.high == 5);
  CHECK(slow.certain() == 0);
}

TEST_CASE("the part of a difference that no round trip explains is certain", "[tools][doctor]") {
  ClockBounds ahead;
  ahead.narrow(100, 130, 110);
  CHECK(ahead.certain() == 20);
  ClockBounds behind;
  behind.narrow(100, 70, 110);
  CHECK(behind.certain() == -30);
}

TEST_CASE("a further question makes the bounds narrower, and never wider", "[tools][doctor]") {
  ClockBounds clock;
  clock.narrow(100, 130, 120);  // 10 to 30 s ahead
  clock.narrow(200, 225, 201);  // 24 to 25 s ahead
  CHECK(clock.low == 24);
  CHECK(clock.high == 25);
  clock.narrow(300, 330, 360);  // 30 s behind to 30 s ahead
  CHECK(clock.low == 24);
  CHECK(clock.high == 25);
}

}  // namespace
}  // namespace stagecraft::tools
