#include "stagecraft/bench/cluster/pinning.h"

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include <sched.h>

namespace stagecraft::bench {

std::vector<int> usable_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) {
    throw std::system_error(errno, std::generic_category(), "sched_getaffinity");
  }
  std::vector<int> usable;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) {
      usable.push_back(cpu);
    }
  }
  return usable;
}

void restrict_to(pid_t process, const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : processors) {
    CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  const std::string threads = "/proc/" + std::to_string(process) + "/task";
  for (const auto& thread : std::filesystem::directory_iterator(threads)) {
    const pid_t id = std::stoi(thread.path().filename().string());
    // The thread may have ended.
    if (sched_setaffinity(id, sizeof(set), &set) != 0 && errno != ESRCH) {
      throw std::system_error(errno, std::generic_category(), "sched_setaffinity");
    }
  }
}

}  // namespace stagecraft::bench
