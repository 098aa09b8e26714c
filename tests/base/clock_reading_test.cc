#include "stagecraft/base/clock_reading.h"

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("clocks of one domain are one clock (CLK-1)", "[base][clock]") {
  const ClockReading here = read_clock();
  const ClockReading later = read_clock();
  CHECK(later.nanoseconds >= here.nanoseconds);
  CHECK(clock_offset(later, here, here.nanoseconds + 1000) == 0);
}

TEST_CASE("a clock of another domain is related by a question and its answer (CLK-1)",
          "[base][clock]") {
  const ClockReading asked{.domain = "here", .nanoseconds = 1000};
  // The other clock is 3 s ahead; the message takes 200 ns each way and the answer 600 ns.
  const ClockReading ahead{.domain = "there", .nanoseconds = 3'000'001'500};
  CHECK(clock_offset(ahead, asked, 2000) == -3'000'000'000);
  const ClockReading behind{.domain = "there", .nanoseconds = -8500};
  CHECK(clock_offset(behind, asked, 2000) == 10'000);
  // Equal domains mean nothing if they are empty.
  CHECK(clock_offset({.domain = "", .nanoseconds = 5}, {.domain = "", .nanoseconds = 0}, 0) == -5);
}

}  // namespace
}  // namespace stagecraft
