#include "stagecraft/base/clock_reading.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <fstream>

namespace stagecraft {
namespace {

/// Returns the boot and the time namespace; empty if the system does not tell.
std::string clock_domain() {
  std::string boot;
  if (!(std::ifstream("/proc/sys/kernel/random/boot_id") >> boot)) {
    return {};
  }
  std::array<char, 64> link{};
  const auto size = readlink("/proc/self/ns/time", link.data(), link.size());
  return boot + " " + std::string(link.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
}

}  // namespace

ClockReading read_clock() {
  static const std::string domain = clock_domain();
  return {.domain = domain,
          .nanoseconds = std::chrono::steady_clock::now().time_since_epoch().count()};
}

std::int64_t halfway(std::int64_t begin, std::int64_t end) {
  return begin + (end - begin) / 2;
}

std::int64_t clock_offset(const ClockReading& theirs,
                          const ClockReading& asked,
                          std::int64_t answered) {
  if (!asked.domain.empty() && theirs.domain == asked.domain) {
    return 0;
  }
  return halfway(asked.nanoseconds, answered) - theirs.nanoseconds;
}

}  // namespace stagecraft
