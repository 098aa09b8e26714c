#include "stagecraft/base/clock.h"

#include <chrono>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a manual clock stands still until it is advanced", "[base][clock]") {
  ManualClock clock;
  const Clock::Time start = clock.now();
  CHECK(clock.now() == start);
  clock.advance(milliseconds(250));
  CHECK(clock.now() - start == milliseconds(250));
  clock.advance(milliseconds(750));
  CHECK(to_seconds(clock.now() - start) == 1.0);
}

TEST_CASE("a steady clock never runs backwards", "[base][clock]") {
  const SteadyClock clock;
  Clock::Time last = clock.now();
  for (int i = 0; i < 1000; ++i) {
    const Clock::Time now = clock.now();
    REQUIRE(now >= last);
    last = now;
  }
}

TEST_CASE("code that takes a Clock sees the time of the test", "[base][clock]") {
  ManualClock manual;
  const Clock& clock = manual;
  const Clock::Time deadline = clock.now() + milliseconds(10);
  CHECK(clock.now() < deadline);
  manual.advance(milliseconds(10));
  CHECK_FALSE(clock.now() < deadline);
}

}  // namespace
}  // namespace stagecraft
