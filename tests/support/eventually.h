/// eventually waits for what another thread or process brings about and no future tells.
#pragma once

#include <algorithm>
#include <chrono>
#include <thread>

namespace stagecraft {

/// Returns true soon after `condition` is; false if it is not within `limit`, which no passing test
/// comes near. Looks less and less often, at least 50 times a second: a test that only looks would
/// take the processor from what it waits for.
template <class Condition>
[[nodiscard]] bool eventually(Condition&& condition,
                              std::chrono::milliseconds limit = std::chrono::minutes(1)) {
  using namespace std::chrono_literals;
  const auto deadline = std::chrono::steady_clock::now() + limit;
  for (std::chrono::microseconds pause = 50us; !condition();
       pause = std::min(2 * pause, 20'000us)) {
    if (std::chrono::steady_clock::now() > deadline) {
      return false;
    }
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace stagecraft
