/// measured_waits finds the waits of a row in a measured step, and the cause of each.
///
///     first task of any row                                             last task of any row
///     |<-- warm-up -->|task|<- dependency ->|<- transfer ->|<- overhead ->|task|<-- drain -->|
///                          until it was made  until it came  until it ran
///
/// Measurements adds them up; state_json lists them one by one. Pure.
/// The tasks and waits of a row fill the span without a gap, as MM-1 needs it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "stagecraft/scheduler/measured/measured_step.h"

namespace stagecraft {

enum class WaitCause : std::uint8_t { WarmUp, Dependency, Transfer, Overhead, Drain };

/// Returns "warm_up", "dependency" and so on, the words of `trace compare --json`.
[[nodiscard]] std::string_view to_string(WaitCause cause);

struct MeasuredWait {
  TimeSpan time;
  WaitCause cause = WaitCause::WarmUp;
};

/// Returns the span from the start of the first task of any row to the end of the last.
[[nodiscard]] TimeSpan tasks_span(const MeasuredStep& step);

/// Returns the waits of a row in order, without empty ones. `span`: tasks_span() of its step.
[[nodiscard]] std::vector<MeasuredWait> waits_of(const MeasuredRow& row, const TimeSpan& span);

}  // namespace stagecraft
