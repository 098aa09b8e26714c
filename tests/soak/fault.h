/// Fault and Soak: one of many random faults of a training run, and the object that causes it.
///
/// The seed and the fault's number determine everything about a fault, except which instruction it
/// meets, which depends on the machine.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>

#include "stagecraft/tests/faults/checked_training.h"
#include "stagecraft/tests/soak/soak_options.h"

namespace stagecraft::tests {

struct Fault {
  int number = 0;
  std::string kind;
  std::mt19937_64 random;
  Rank rank{0};
  bool recover = false;                            ///< from mirrors, otherwise from the file
  std::optional<std::chrono::microseconds> delay;  ///< into a step; nothing: between two steps
};

/// Holds the result of a fault.
struct Outcome {
  bool unfelt = false;                      ///< no step failed; for garbage none may
  bool survived = false;                    ///< a step failed, and no worker had to be replaced
  bool late = false;                        ///< failed later than promised, on this machine
  std::optional<double> to_fail, to_go_on;  ///< s

  void failed(double seconds, std::chrono::milliseconds promise) {
    to_fail = std::max(to_fail.value_or(0.0), seconds);
    late = late || seconds > std::chrono::duration<double>(promise).count();
  }
  void went_on(double seconds) { to_go_on = std::max(to_go_on.value_or(0.0), seconds); }
};

inline SpawnOptions soak_spawn_options(const SoakOptions& options) {
  return {.program = "/proc/self/exe",  // no other to build
          .heartbeat = options.silence / 5,
          .silence = options.silence};
}

class Soak {
 public:
  Soak() = default;
  Soak(const Soak&) = delete;
  Soak& operator=(const Soak&) = delete;
  virtual ~Soak() = default;

  [[nodiscard]] virtual CheckedTraining& training() = 0;
  /// Causes the fault, at a step or after some. Throws a Violation for a broken promise.
  [[nodiscard]] virtual Outcome suffer(Fault& fault) = 0;

  /// Returns an instant within a step, or a little after it.
  [[nodiscard]] std::chrono::microseconds instant(std::mt19937_64& random) {
    std::uniform_real_distribution<double> part(0.0, 1.2);
    return std::chrono::microseconds(
        static_cast<std::int64_t>(1e6 * training().step_seconds() * part(random)));
  }
};

}  // namespace stagecraft::tests
