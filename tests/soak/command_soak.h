/// The soak of the command strikes runs of `stagecraft train --restarts`: their workers, and the
/// command itself, which is then started again with the same words.
///
/// Every run must end with exit status 0, and with the weights and metrics of the unbroken run.
#pragma once

#include <array>

#include "stagecraft/tests/soak/soak_options.h"

namespace stagecraft::tests {

/// healing: a second strike while the run is healed; end: behind the last step; driver-healing: the
/// command itself while it heals; start: the command itself while it starts.
inline constexpr std::array<const char*, 9> kCommandFaults{
    "kill", "several", "stop", "memory", "healing", "end", "driver", "driver-healing", "start"};

/// Causes the faults and prints the measurements. Returns the exit status of the program: 1 after
/// the first broken promise, which it prints with seed and instant.
[[nodiscard]] int run_command_soak(const SoakOptions& options);

}  // namespace stagecraft::tests
