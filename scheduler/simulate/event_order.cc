#include "stagecraft/scheduler/simulate/event_order.h"

#include <fmt/format.h>

namespace stagecraft {

std::string to_string(const StepEvent& event) {
  return event.is_transfer() ? fmt::format("{}>{}", to_string(event.task), event.receiver.value)
                             : to_string(event.task);
}

std::string to_string(const EventOrder& order) {
  return fmt::format("{} < {}", to_string(order.before), to_string(order.after));
}

}  // namespace stagecraft
