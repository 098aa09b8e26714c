/// SteadyClock is the steady clock of the system, for tests that derive a clock of their own from
/// it, one that differs in how threads start.
#pragma once

#include "stagecraft/base/clock.h"

namespace stagecraft::testing {

class SteadyClock : public Clock {
 public:
  [[nodiscard]] Time now() const override { return steady()->now(); }
  bool wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when,
                  const std::function<bool()>& condition) const override {
    return steady()->wait_until(changed, lock, when, condition);
  }
};

}  // namespace stagecraft::testing
