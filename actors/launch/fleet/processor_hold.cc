#include "stagecraft/actors/launch/fleet/processor_hold.h"

#include <utility>

#include "stagecraft/base/log.h"

namespace stagecraft {

void ProcessorHold::hold(const std::string& capability) {
  const std::scoped_lock lock(mutex_);
  capability_ = capability;
}

std::string ProcessorHold::capability() const {
  const std::scoped_lock lock(mutex_);
  return capability_;
}

ProcessorFacts ProcessorHold::held(const ProcessorFacts& processor) const {
  const std::scoped_lock lock(mutex_);
  return capability_.empty() ? processor : held_to(processor, capability_);
}

void ProcessorHold::tell(const std::vector<NamedProcessor>& ranks) {
  const auto difference = difference_of(ranks);
  const std::string text = difference ? "ranks " + to_string(*difference) : "";
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(reported_, text) == text || text.empty()) {
      return;
    }
  }
  log(tell_ ? Level::Info : Level::Warning,
      "ranks of several processors",
      {{"what", difference->what}, {"mend", difference->remedy}});
  if (tell_) {
    tell_(text);
  }
}

}  // namespace stagecraft
