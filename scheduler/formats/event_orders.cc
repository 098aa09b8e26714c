#include "stagecraft/scheduler/formats/event_orders.h"

#include <fmt/format.h>

#include "stagecraft/base/error.h"
#include "stagecraft/scheduler/formats/parts/cell_text.h"

namespace stagecraft {
namespace {

using formats::fail;
using formats::Location;
using formats::quoted;
using formats::trim;

constexpr std::string_view kOrderHelp =
    "an order is two tasks or transfers, the earlier first, e.g. 0F0>1 < 0F1";

StepEvent parse_event(std::string_view text, Location at) {
  const std::size_t arrow = text.find('>');
  const std::string_view task = trim(text.substr(0, arrow));
  // An order has no row, so a task cannot leave out its stage as in a schedule.
  if (task.empty() || task.front() < '0' || task.front() > '9' ||
      task.find('|') != std::string_view::npos) {
    fail(at,
         fmt::format("{} does not begin with a task and its stage; {}", quoted(text), kOrderHelp));
  }
  StepEvent event{formats::parse_cell(task, 0, at).tasks().front()};
  if (arrow != std::string_view::npos) {
    const auto stage = formats::whole_number(trim(text.substr(arrow + 1)));
    if (!stage || *stage >= kMaxStages) {
      fail(at, fmt::format("{} does not end with a stage; {}", quoted(text), kOrderHelp));
    }
    event.receiver = StageId(*stage);
  }
  return event;
}

}  // namespace

std::vector<EventOrder> parse_event_orders(std::string_view text) {
  formats::require_size(text);
  std::vector<EventOrder> orders;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t newline = text.find('\n');
    const std::string_view whole = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view{} : text.substr(newline + 1);
    const std::string_view content = trim(whole.substr(0, whole.find('#')));
    if (content.empty()) {
      continue;
    }
    const auto location_of = [&](std::string_view part) {
      return Location{line, static_cast<std::size_t>(part.data() - whole.data()) + 1};
    };
    const std::size_t middle = content.find('<');
    if (middle == std::string_view::npos ||
        content.find('<', middle + 1) != std::string_view::npos) {
      fail(location_of(content),
           fmt::format("{} is not an order; {}", quoted(content), kOrderHelp));
    }
    const std::string_view before = trim(content.substr(0, middle));
    const std::string_view after = trim(content.substr(middle + 1));
    if (before.empty() || after.empty()) {
      fail(location_of(content),
           fmt::format("{} is not an order; {}", quoted(content), kOrderHelp));
    }
    orders.push_back(
        {parse_event(before, location_of(before)), parse_event(after, location_of(after))});
  }
  if (orders.empty()) {
    throw Error(Errc::ScheduleParse, fmt::format("the text has no order; {}", kOrderHelp));
  }
  return orders;
}

}  // namespace stagecraft
