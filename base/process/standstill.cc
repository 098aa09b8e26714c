#include "stagecraft/base/process/standstill.h"

#include <algorithm>
#include <system_error>
#include <thread>

#include "stagecraft/base/log.h"

namespace stagecraft {

Standstills::Span Standstills::since_last_look(Time now) const {
  const auto gap = std::chrono::duration_cast<Span>(now - last_look_);
  return gap < kLeast ? Span(0) : gap;
}

Standstills::Span Standstills::look(Time now) {
  const std::scoped_lock lock(mutex_);
  const Span length = since_last_look(now);
  if (length > Span(0)) {
    known_.push_back({now, length});
  }
  last_look_ = now;
  return length;
}

Standstills::Span Standstills::longest(Time now, Span window) const {
  const std::scoped_lock lock(mutex_);
  Span longest = since_last_look(now);  // the thread that looks may not have woken yet
  for (const Standstill& one : known_) {
    if (now - one.end <= window) {
      longest = std::max(longest, one.length);
    }
  }
  return longest;
}

std::shared_ptr<const Standstills> watch_standstills() {
  using Clock = std::chrono::steady_clock;
  const auto made = std::make_shared<Standstills>(Clock::now());
  try {
    std::thread([watched = std::weak_ptr<Standstills>(made)] {
      while (const auto there = watched.lock()) {
        if (const auto length = there->look(Clock::now()); length.count() > 0) {
          log(Level::Warning,
              "this process did not run for a time, as when its job is suspended; peers may treat "
              "it as lost",
              {{"seconds", std::chrono::duration<double>(length).count()}});
        }
        std::this_thread::sleep_for(Standstills::kLook);
      }
    }).detach();
  } catch (const std::system_error&) {  // without a thread, no standstill is noticed
  }
  return made;
}

}  // namespace stagecraft
