/// What every schedule that a reader accepts must stand, however wrong it is: being checked,
/// simulated, repaired and converted without a crash and in bounded time.
#pragma once

#include <span>

#include "stagecraft/scheduler/communication.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft::fuzz {

/// Whether the headers say the same.
[[nodiscard]] bool same_headers(const Schedule& a, const Schedule& b);

/// Checks a schedule with every rule on; a valid one is simulated, and a repair that is proposed
/// must repair. Passes over schedules too large for a fuzzer's pace.
void exercise(const Schedule& schedule, std::span<const CommAction> communication = {});

}  // namespace stagecraft::fuzz
