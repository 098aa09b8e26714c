#include "stagecraft/scheduler/dag/directives/strategy_faults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "stagecraft/base/error.h"
#include "stagecraft/base/printable.h"
#include "stagecraft/scheduler/strategy/strategy_text.h"

namespace stagecraft {

void StrategyFaults::note(std::size_t directive, const std::string& what) {
  constexpr std::size_t kShown = 60;
  std::string text = to_string(strategy_->directives().at(directive));
  if (text.size() > kShown) {
    text = std::string(beginning_of(text, kShown)) + "...";
  }
  faults_.push_back(fmt::format("{}, {}: {}", strategy_->place_of(directive), text, what));
}

void StrategyFaults::refuse_if_any() const {
  constexpr std::size_t kListed = 20;
  if (faults_.empty()) {
    return;
  }
  const std::size_t listed = std::min(faults_.size(), kListed);
  std::string text = fmt::format(
      "{}",
      fmt::join(faults_.begin(), faults_.begin() + static_cast<std::ptrdiff_t>(listed), "\n"));
  if (faults_.size() > listed) {
    text += fmt::format("\nand {} more", faults_.size() - listed);
  }
  throw Error(Errc::ScheduleInvalid, text);
}

}  // namespace stagecraft
