#include "stagecraft/base/clock.h"

#include <thread>
#include <utility>

namespace stagecraft {
namespace {

class SystemThread final : public Clock::Thread {
 public:
  explicit SystemThread(std::function<void()> work) : thread_(std::move(work)) {}

 private:
  std::jthread thread_;
};

class SteadyClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return std::chrono::steady_clock::now(); }

  bool wait_until(std::condition_variable& changed,
                  std::unique_lock<std::mutex>& lock,
                  Time when,
                  const std::function<bool()>& condition) const override {
    if (when == Time::max()) {
      changed.wait(lock, condition);
      return true;
    }
    return changed.wait_until(lock, when, condition);
  }
};

// Null: the steady one. A pointer, because objects that end with the process ask for it after the
// end of their thread's objects.
thread_local const std::shared_ptr<const Clock>* clock_of_thread = nullptr;

}  // namespace

std::unique_ptr<Clock::Thread> Clock::start(std::function<void()> work) const {
  return std::make_unique<SystemThread>(std::move(work));
}

const std::shared_ptr<const Clock>& Clock::steady() {
  // Never destroyed: threads may wait by it while the process ends.
  static const auto* const made =
      new std::shared_ptr<const Clock>(std::make_shared<const SteadyClock>());
  return *made;
}

const std::shared_ptr<const Clock>& Clock::current() {
  return clock_of_thread == nullptr ? steady() : *clock_of_thread;
}

ClockOfThread::ClockOfThread(std::shared_ptr<const Clock> clock)
    : clock_(std::move(clock)), before_(std::exchange(clock_of_thread, &clock_)) {}

ClockOfThread::~ClockOfThread() {
  clock_of_thread = before_;
}

}  // namespace stagecraft
