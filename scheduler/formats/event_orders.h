/// The text form of orders: one on every line, the earlier on the left.
///
///     # stage 0 waits until what it made has reached stage 1
///     0F0>1 < 0F1
///     1F0 < 0F1>1
///
/// Tasks are written as in schedules (formats/text.h), with their stage; `0F0>1` is the way of what
/// 0F0 made to stage 1. `#` begins a comment. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "stagecraft/scheduler/event_order.h"

namespace stagecraft {

/// Whether a schedule has what they name is for those to say who keep them.
/// Errors: ScheduleParse with line and column, also for a text without an order.
[[nodiscard]] std::vector<EventOrder> parse_event_orders(std::string_view text);

}  // namespace stagecraft
