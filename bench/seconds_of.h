/// seconds_of measures how long a function takes, by the clock.
#pragma once

#include <chrono>

namespace stagecraft::bench {

template <class Body>
[[nodiscard]] double seconds_of(Body&& body) {
  const auto start = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace stagecraft::bench
