/// Violation is a promise that a run under faults has broken. The soak programs throw it and print
/// it with the seed.
#pragma once

#include <chrono>
#include <stdexcept>
#include <string>

namespace stagecraft::tests {

/// A promise is measured and printed. On a busy machine it may take this many times as long before
/// it counts as broken.
inline constexpr int kPatience = 10;

struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Throws a Violation unless the promise was kept.
inline void require(bool kept, const std::string& promise) {
  if (!kept) {
    throw Violation(promise);
  }
}

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace stagecraft::tests
