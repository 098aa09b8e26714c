/// Random draws everything in a simulation that its seed decides. Its draws are the same in every
/// build.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace stagecraft::simulation {

class Random {
 public:
  explicit Random(std::uint64_t seed) : source_(seed) {}

  /// Returns a number below `end`, which is not 0.
  [[nodiscard]] std::uint64_t below(std::uint64_t end) { return source_() % end; }
  [[nodiscard]] bool one_in(std::uint64_t times) { return below(times) == 0; }
  [[nodiscard]] std::chrono::nanoseconds up_to(std::chrono::nanoseconds most) {
    return std::chrono::nanoseconds(below(static_cast<std::uint64_t>(most.count()) + 1));
  }

 private:
  std::mt19937_64 source_;
};

}  // namespace stagecraft::simulation
