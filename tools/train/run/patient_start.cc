#include "stagecraft/tools/train/run/patient_start.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "stagecraft/base/error.h"

namespace stagecraft::tools {
namespace {

constexpr std::chrono::milliseconds kFirstPause{100};
constexpr std::chrono::milliseconds kLongestPause{5'000};

void pause_until(Clock::Time when, const Clock& clock) {
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock lock(mutex);
  (void)clock.wait_until(never, lock, when, [] { return false; });
}

}  // namespace

void start_patiently(const std::function<void()>& start,
                     std::chrono::nanoseconds patience,
                     const std::function<bool()>& ends,
                     const Clock& clock) {
  const Clock::Time deadline = clock.now() + patience;
  for (auto pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    try {
      return start();
    } catch (const Error& error) {
      if (error.code() != Errc::ClusterMember || clock.now() + pause > deadline || ends()) {
        throw;
      }
    }
    pause_until(clock.now() + pause, clock);
  }
}

}  // namespace stagecraft::tools
