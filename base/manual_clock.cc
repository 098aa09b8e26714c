#include "stagecraft/base/manual_clock.h"

#include <vector>

namespace stagecraft {

Clock::Time ManualClock::now() const {
  const std::scoped_lock own(mutex_);
  return now_;
}

bool ManualClock::wait_until(std::condition_variable& changed,
                             std::unique_lock<std::mutex>& lock,
                             Time when,
                             const std::function<bool()>& condition) const {
  while (!condition()) {
    if (now() >= when) {
      return false;
    }
    wait_once(changed, lock, when);
  }
  return true;
}

void ManualClock::wait_once(std::condition_variable& changed,
                            std::unique_lock<std::mutex>& lock,
                            Time when) const {
  std::list<Wait>::iterator wait;
  {
    const std::scoped_lock own(mutex_);
    if (now_ >= when) {
      return;
    }
    wait = waits_.insert(waits_.end(), {.changed = &changed, .mutex = lock.mutex()});
  }
  changed.wait(lock);
  lock.unlock();  // advance() may need it to let go of this wait
  {
    std::unique_lock own(mutex_);
    released_.wait(own, [&] { return !wait->is_woken; });
    waits_.erase(wait);
  }
  lock.lock();
}

/// Keeps MA-1.
void ManualClock::advance(Time::duration span) {
  std::vector<Wait*> woken;
  {
    const std::scoped_lock own(mutex_);
    now_ += span;
    for (Wait& wait : waits_) {
      wait.is_woken = true;
      woken.push_back(&wait);
    }
  }
  for (const Wait* wait : woken) {
    { const std::scoped_lock its_own(*wait->mutex); }
    wait->changed->notify_all();
  }
  {
    const std::scoped_lock own(mutex_);
    for (Wait* wait : woken) {
      wait->is_woken = false;
    }
  }
  released_.notify_all();
}

std::size_t ManualClock::waits() const {
  const std::scoped_lock own(mutex_);
  return waits_.size();
}

}  // namespace stagecraft
