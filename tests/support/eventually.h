/// eventually waits for what another thread or process brings about and no future tells.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "stagecraft/base/clock.h"

namespace stagecraft {

/// Returns true soon after `condition` is; false if it is not within `limit`, which no passing test
/// comes near. Looks less and less often, at least 50 times a second: a test that only looks would
/// take the processor from what it waits for.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& condition,
                              std::chrono::milliseconds limit = std::chrono::minutes(1)) {
  using namespace std::chrono_literals;
  const auto clock = Clock::current();  // a simulation lets other things happen meanwhile
  const Clock::Time deadline = clock->now() + limit;
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  for (std::chrono::microseconds pause = 50us; !condition();
       pause = std::min(2 * pause, 20'000us)) {
    if (clock->now() > deadline) {
      return false;
    }
    (void)clock->wait_until(never, lock, clock->now() + pause, [] { return false; });
  }
  return true;
}

}  // namespace stagecraft
