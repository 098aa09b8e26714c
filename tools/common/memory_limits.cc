#include "stagecraft/tools/common/memory_limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <pthread.h>

namespace stagecraft::tools {
namespace {

constexpr double kKibibyte = 1024.0;
constexpr double kNoLimit = 0x1p60;  // version 1 writes a very large number for no limit

/// Returns the first word of a file as a number; nothing for "max" and for a missing file.
std::optional<double> number_in(const std::string& path) {
  std::ifstream file(path);
  double number = 0.0;
  return file >> number ? std::optional(number) : std::nullopt;
}

/// Returns the number after a name, in a file of lines "NAME NUMBER".
double number_of(const std::string& path, std::string_view name) {
  std::ifstream file(path);
  std::string word;
  for (double number = 0.0; file >> word;) {
    if (word == name && file >> number) {
      return number;
    }
    file.ignore(1 << 16, '\n');
  }
  return 0.0;
}

/// The files of one version of control groups.
struct GroupFiles {
  std::string_view folder;  ///< mount point of the groups
  std::string_view limit, usage, inactive, active;
};

constexpr GroupFiles kVersion1{"/sys/fs/cgroup/memory",
                               "memory.limit_in_bytes",
                               "memory.usage_in_bytes",
                               "total_inactive_file",
                               "total_active_file"};
constexpr GroupFiles kVersion2{
    "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file", "active_file"};

/// Returns what a group may take: the rest of its limit, and cached files, which the kernel frees
/// on request.
std::optional<double> left_to(const std::string& group, const GroupFiles& files) {
  const auto limit = number_in(fmt::format("{}/{}", group, files.limit));
  const auto usage = number_in(fmt::format("{}/{}", group, files.usage));
  if (!limit || !usage || *limit >= kNoLimit) {
    return std::nullopt;
  }
  const std::string statistics = group + "/memory.stat";
  const double cached = number_of(statistics, files.inactive) + number_of(statistics, files.active);
  return std::max(0.0, *limit - std::max(0.0, *usage - cached));
}

/// Adds the tightest limit of the group and of those above it. In a container the path may be an
/// outside one, of which only the top levels exist.
void add_group(const std::string& root,
               std::string path,
               const GroupFiles& files,
               std::vector<MemoryLimit>& limits) {
  std::optional<MemoryLimit> tightest;
  while (true) {
    const auto left = left_to(fmt::format("{}{}{}", root, files.folder, path), files);
    if (left && (!tightest || *left < tightest->bytes)) {
      tightest = {fmt::format("the control group {}", path.empty() ? "/" : path), *left};
    }
    if (path.empty()) {
      break;
    }
    path.erase(path.rfind('/'));
  }
  if (tightest) {
    limits.push_back(*tightest);
  }
}

/// Reads lines "NUMBER:CONTROLLERS:PATH"; version 2 has the number 0 and no controllers.
void add_control_groups(const std::string& root, std::vector<MemoryLimit>& limits) {
  std::ifstream file(root + "/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (second == std::string::npos) {
      continue;
    }
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") {
      path.clear();
    }
    if (controllers.empty()) {
      add_group(root, path, kVersion2, limits);
    } else if (fmt::format(",{},", controllers).find(",memory,") != std::string::npos) {
      add_group(root, path, kVersion1, limits);
    }
  }
}

/// Returns the bytes of the stacks of this many threads.
double stack_bytes(int threads) {
  pthread_attr_t usual;
  std::size_t bytes = 0;
  if (pthread_getattr_default_np(&usual) == 0) {
    pthread_attr_getstacksize(&usual, &bytes);
    pthread_attr_destroy(&usual);
  }
  return threads * static_cast<double>(bytes);
}

void add_address_space(int threads, std::vector<MemoryLimit>& limits) {
  struct rlimit limit {};
  const auto pages = number_in("/proc/self/statm");
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && pages) {
    const double used = *pages * static_cast<double>(sysconf(_SC_PAGESIZE));
    limits.push_back(
        {"ulimit -v, less the stacks of its threads",
         std::max(0.0, static_cast<double>(limit.rlim_cur) - used - stack_bytes(threads))});
  }
}

}  // namespace

std::vector<MemoryLimit> memory_limits(int threads, const std::string& root) {
  std::vector<MemoryLimit> limits;
  // 0 means unknown: a running machine has some memory.
  if (const double left = number_of(root + "/proc/meminfo", "MemAvailable:"); left > 0) {
    limits.push_back({"this machine", left * kKibibyte});
  }
  add_control_groups(root, limits);
  add_address_space(threads, limits);
  std::ranges::stable_sort(limits, {}, &MemoryLimit::bytes);
  return limits;
}

double memory_left() {
  const std::vector<MemoryLimit> limits = memory_limits(/*threads=*/0);
  return limits.empty() ? std::numeric_limits<double>::infinity() : limits.front().bytes;
}

}  // namespace stagecraft::tools
