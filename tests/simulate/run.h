/// run trains in a simulated cluster under faults and checks what is promised:
///
/// SM-1: every step that succeeds, and every state that is recovered, loaded or saved, has the bits
///       of the unbroken run.
/// SM-2: recovery goes back at most one step, if a whole state is in the mirrors.
/// SM-3: a rank that is blamed for its loss was struck.
/// SM-4: every wait ends: a run gets on after each failure, and nothing is left to wait for.
/// SM-5: at the end no worker is left.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stagecraft/tests/simulate/faults.h"

namespace stagecraft::simulation {

struct RunOptions {
  int ranks = 2;  ///< 2 or 4
  std::int64_t steps = 6;
  int faults = 8;
};

struct RunResult {
  std::string violation;  ///< empty: all promises were kept
  std::string story;
  int faults = 0;  ///< that struck
  int recoveries = 0;
  std::int64_t events = 0;
  bool is_stuck = false;  ///< threads wait for ever, so this process can make no other run
};

/// Returns the faults of this seed.
[[nodiscard]] std::vector<Fault> faults_of(std::uint64_t seed, const RunOptions& options);

[[nodiscard]] RunResult run(std::uint64_t seed,
                            const RunOptions& options,
                            const std::vector<Fault>& faults);

/// Returns the fewest faults found that break a promise too. `faults`: break one.
[[nodiscard]] std::vector<Fault> shortened(std::uint64_t seed,
                                           const RunOptions& options,
                                           std::vector<Fault> faults);

}  // namespace stagecraft::simulation
