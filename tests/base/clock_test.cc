#include "stagecraft/base/clock.h"

#include <future>
#include <thread>
#include <vector>

#include "stagecraft/base/manual_clock.h"
#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

/// A condition that a thread waits for.
struct Awaited {
  std::mutex mutex;
  std::condition_variable changed;
  bool is_true = false;

  /// Returns whether it became true before `when`.
  bool wait(const Clock& clock, Clock::Time when) {
    std::unique_lock lock(mutex);
    return clock.wait_until(changed, lock, when, [this] { return is_true; });
  }
  void set() {
    {
      const std::scoped_lock lock(mutex);
      is_true = true;
    }
    changed.notify_all();
  }
};

void until_waits(const ManualClock& clock, std::size_t count) {
  while (clock.waits() != count) {
    std::this_thread::yield();
  }
}

TEST_CASE("the steady clock is the system's, and ends a wait at its time", "[base][clock]") {
  const Clock& clock = *Clock::steady();
  const auto before = std::chrono::steady_clock::now();
  const Clock::Time now = clock.now();
  CHECK(now >= before);
  CHECK(now <= std::chrono::steady_clock::now());
  Awaited never;
  CHECK_FALSE(never.wait(clock, now + 1ms));
  CHECK(clock.now() >= now + 1ms);
}

TEST_CASE("a manual clock stands still until it is advanced", "[base][clock]") {
  ManualClock clock;
  const Clock::Time begin = clock.now();
  CHECK(clock.now() == begin);
  clock.advance(2h);
  CHECK(clock.now() == begin + 2h);
}

TEST_CASE("a wait by a manual clock ends when its time comes, and not before", "[base][clock]") {
  ManualClock clock;
  Awaited never;
  auto waited = std::async(std::launch::async, [&] { return never.wait(clock, clock.now() + 1h); });
  until_waits(clock, 1);
  clock.advance(1h - 1ns);
  until_waits(clock, 1);  // it was woken, and waits again
  clock.advance(1ns);
  CHECK_FALSE(waited.get());
  CHECK(clock.waits() == 0);
}

TEST_CASE("a wait by a manual clock ends with what it waits for", "[base][clock]") {
  ManualClock clock;
  Awaited awaited;
  auto waited =
      std::async(std::launch::async, [&] { return awaited.wait(clock, clock.now() + 1h); });
  until_waits(clock, 1);
  awaited.set();
  CHECK(waited.get());
}

TEST_CASE("a thread has the steady clock unless another is set for it", "[base][clock]") {
  CHECK(Clock::current() == Clock::steady());
  const auto manual = std::make_shared<ManualClock>();
  {
    const ClockOfThread outer(manual);
    CHECK(Clock::current() == manual);
    {
      const ClockOfThread inner(Clock::steady());
      CHECK(Clock::current() == Clock::steady());
    }
    CHECK(Clock::current() == manual);
    CHECK(std::async(std::launch::async, [] { return Clock::current(); }).get() == Clock::steady());
  }
  CHECK(Clock::current() == Clock::steady());
}

TEST_CASE("a clock starts a thread whose end waits for the work", "[base][clock]") {
  const auto manual = std::make_shared<ManualClock>();
  const ClockOfThread scope(manual);
  std::promise<void> runs;
  std::shared_ptr<const Clock> of_thread;
  auto thread = manual->start([&] {
    runs.get_future().wait();
    of_thread = Clock::current();
  });
  runs.set_value();
  thread = nullptr;
  CHECK(of_thread == Clock::steady());
}

TEST_CASE("a wait for a time that is over does not wait", "[base][clock]") {
  ManualClock clock;
  Awaited never, over;
  CHECK_FALSE(never.wait(clock, clock.now()));
  over.set();
  CHECK(over.wait(clock, clock.now()));
}

TEST_CASE("no wait misses an advance, however the two meet (MA-1)", "[base][clock]") {
  ManualClock clock;
  for (int round = 0; round < 300; ++round) {
    const Clock::Time when = clock.now() + 1s;
    std::vector<std::future<bool>> waits;
    for (int i = 0; i < 4; ++i) {
      waits.push_back(std::async(std::launch::async, [&clock, when] {
        Awaited never;  // gone as soon as the wait is over
        return never.wait(clock, when);
      }));
    }
    clock.advance(1s);
    for (std::future<bool>& wait : waits) {
      CHECK_FALSE(wait.get());
    }
  }
}

}  // namespace
}  // namespace stagecraft
