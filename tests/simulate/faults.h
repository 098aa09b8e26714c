/// Faults are what strikes a simulated cluster. A run's faults are drawn from its seed before it
/// begins, so that fewer of them can strike the same run.
#pragma once

#include <cstdint>
#include <vector>

#include "stagecraft/base/clock.h"
#include "stagecraft/base/ids.h"
#include "stagecraft/tests/simulate/cluster.h"
#include "stagecraft/tests/simulate/random.h"

namespace stagecraft::simulation {

struct Fault {
  enum class Kind {
    Kill,  ///< the rank's process ends
    Stop,  ///< it does nothing for the span; the driver gives it up after Processes::kSilence
    Hold,  ///< what the two ranks send each other takes longer by the span
  };

  std::int64_t after = 0;  ///< strikes when so many things have happened
  Kind kind = Kind::Kill;
  Rank rank, other;           ///< `other`: of Hold; may be the driver
  std::vector<Plane> planes;  ///< of Hold
  Clock::Time::duration span{0};
};

/// Draws `count` faults for a run in which about `events` things happen.
[[nodiscard]] std::vector<Fault> draw_faults(Random& random,
                                             int count,
                                             int ranks,
                                             std::int64_t events);

/// Returns whether it strikes: not a process that has ended.
bool strike(const Fault& fault, Processes& processes);

}  // namespace stagecraft::simulation
