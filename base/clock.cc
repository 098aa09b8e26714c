#include "stagecraft/base/clock.h"

namespace stagecraft {
namespace {

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }

  void wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when) const override {
    changed.wait_until(lock, when);
  }
};

}  // namespace

const std::shared_ptr<const Clock>& Clock::steady() {
  // Never destroyed: threads may wait by it while the process ends.
  static const auto* const made =
      new std::shared_ptr<const Clock>(std::make_shared<const SteadyClock>());
  return *made;
}

}  // namespace stagecraft
