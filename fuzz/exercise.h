/// What every schedule that a reader accepts must stand, however wrong it is: being checked,
/// simulated, repaired and converted without a crash and in bounded time.
#pragma once

#include <span>
#include <string_view>

#include "stagecraft/scheduler/communication.h"
#include "stagecraft/scheduler/schedule.h"

namespace stagecraft::fuzz {

/// Ends the program, so that the fuzzer keeps the input, when `holds` is false.
void require(bool holds, std::string_view promise);

/// Whether the headers say the same.
[[nodiscard]] bool same_headers(const Schedule& a, const Schedule& b);

/// Checks a schedule with every rule on; a valid one is simulated, and a repair that is proposed
/// must repair. Passes over schedules too large for a fuzzer's pace.
void exercise(const Schedule& schedule, std::span<const CommAction> communication = {});

}  // namespace stagecraft::fuzz
