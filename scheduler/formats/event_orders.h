/// event_orders defines the text form of orders: one per line, the earlier event on the left.
///
///     # stage 0 waits until its result has reached stage 1
///     0F0>1 < 0F1
///     1F0 < 0F1>1
///
/// Tasks are written as in schedules (formats/text.h), with their stage; `0F0>1` is the transfer of
/// 0F0's result to stage 1. `#` begins a comment. Any thread.
#pragma once

#include <string_view>
#include <vector>

#include "stagecraft/scheduler/simulate/event_order.h"

namespace stagecraft {

/// Reads the orders. Does not check whether a schedule has the named events; the code that keeps
/// the orders does.
/// Errors: ScheduleParse with line and column, also for a text without an order.
[[nodiscard]] std::vector<EventOrder> parse_event_orders(std::string_view text);

}  // namespace stagecraft
