#include "stagecraft/tools/train/run/patient_start.h"

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

/// Lets the time of a wait pass at once.
class HastyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return now_; }
  bool wait_until(std::condition_variable&,
                  std::unique_lock<std::mutex>&,
                  Time when,
                  const std::function<bool()>& condition) const override {
    now_ = when;
    return condition();
  }

 private:
  mutable Time now_{std::chrono::hours(1)};
};

/// A worker whose first starts fail.
struct Start {
  int failures = 0;
  Errc code = Errc::ClusterMember;
  int tries = 0;

  /// Returns the text of the error; empty if the worker has come.
  std::string go(const std::function<bool()>& ends = [] { return false; }) {
    try {
      start_patiently(
          [this] {
            if (++tries <= failures) {
              throw Error(code, "it did not start");
            }
          },
          std::chrono::seconds(60),
          ends,
          clock);
      return "";
    } catch (const Error& error) {
      return error.message();
    }
  }

  HastyClock clock;
};

}  // namespace

TEST_CASE("a start that fails is tried again, after a pause", "[tools][restarts]") {
  Start start{.failures = 9};
  const Clock::Time begun = start.clock.now();
  CHECK(start.go().empty());
  CHECK(start.tries == 10);
  CHECK(start.clock.now() - begun > std::chrono::seconds(15));
}

TEST_CASE("starts are tried no longer than a worker has to join", "[tools][restarts]") {
  Start start{.failures = 1'000};
  const Clock::Time begun = start.clock.now();
  CHECK(start.go() == "it did not start");
  CHECK(start.clock.now() - begun <= std::chrono::seconds(60));
  CHECK(start.tries < 30);
}

TEST_CASE("a start is not tried again if the run is to end, or if nobody joined in time",
          "[tools][restarts]") {
  Start ends{.failures = 9};
  CHECK(ends.go([] { return true; }) == "it did not start");
  CHECK(ends.tries == 1);
  Start late{.failures = 9, .code = Errc::ClusterTimeout};
  CHECK(late.go() == "it did not start");
  CHECK(late.tries == 1);
}

}  // namespace stagecraft::tools
