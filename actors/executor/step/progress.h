/// Progress shows the current activity of a rank, readable at any time.
///
/// Only the rank's plan thread writes it; the agent reads it on any thread. It lives as long as
/// either of them, so that a question never keeps an executor alive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "stagecraft/futures/wait_board.h"

namespace stagecraft {

struct Progress {
  static constexpr std::int32_t kBetweenSteps = -1;

  std::atomic<std::int32_t> instruction{kBetweenSteps};  ///< position in the rank's list
  std::atomic<std::int32_t> program{0};                  ///< StepOrder::program, of the list
  std::atomic<std::int64_t> since_ns{0};  ///< time of the waits' clock: when the instruction began
  WaitBoard waits;                        ///< the ranks that it waits for

  /// Called on the plan thread when the instruction at this position begins.
  void begin(std::size_t position) {
    instruction.store(static_cast<std::int32_t>(position), std::memory_order_relaxed);
    since_ns.store(waits.clock().now().time_since_epoch().count(), std::memory_order_relaxed);
  }

  /// Called on the plan thread when the step ends in any way.
  void end() { instruction.store(kBetweenSteps, std::memory_order_relaxed); }
};

}  // namespace stagecraft
