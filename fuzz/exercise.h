/// exercise checks, simulates, repairs and converts a schedule that a reader accepts. However wrong
/// the schedule is, this must not crash and must end in bounded time.
#pragma once

#include <span>

#include "stagecraft/scheduler/model/communication.h"
#include "stagecraft/scheduler/model/schedule.h"

namespace stagecraft::fuzz {

/// Returns whether the headers are equal.
[[nodiscard]] bool same_headers(const Schedule& a, const Schedule& b);

/// Checks a schedule with every rule on, simulates a valid one, and tests that a proposed repair
/// repairs. Skips schedules too large for a fuzzer's pace.
void exercise(const Schedule& schedule, std::span<const CommAction> communication = {});

}  // namespace stagecraft::fuzz
