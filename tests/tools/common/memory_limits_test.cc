#include "stagecraft/tools/common/memory_limits.h"

#include <filesystem>
#include <fstream>
#include <map>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"

namespace stagecraft::tools {
namespace {

/// Holds the files of a kernel whose values a test sets.
class Kernel {
 public:
  void say(const std::string& file, const std::string& text) const {
    const std::filesystem::path path = folder_.path() + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  /// Returns the limits by their origin, without the address space limit of this test's process,
  /// which is not in the kernel's files.
  [[nodiscard]] std::map<std::string, double> limits() const {
    std::map<std::string, double> found;
    double least = 0.0;
    for (const MemoryLimit& limit : memory_limits(1, folder_.path())) {
      CHECK(limit.bytes >= least);  // the tightest first
      least = limit.bytes;
      if (limit.who.find("ulimit") == std::string::npos) {
        found.emplace(limit.who, limit.bytes);
      }
    }
    return found;
  }

 private:
  tests::TemporaryFolder folder_;
};

using Limits = std::map<std::string, double>;

}  // namespace

TEST_CASE("what the machine has left without swapping is a limit", "[tools][memory]") {
  const Kernel kernel;
  kernel.say("/proc/meminfo",
             "MemTotal:       24000 kB\nMemFree: 10 kB\nMemAvailable:   1000 kB\n");
  CHECK(kernel.limits() == Limits{{"this machine", 1024000.0}});
}

TEST_CASE("control groups of version 2 limit on every level", "[tools][memory]") {
  const Kernel kernel;
  kernel.say("/proc/self/cgroup", "0::/batch/job\n");
  kernel.say("/sys/fs/cgroup/batch/memory.max", "5000\n");
  kernel.say("/sys/fs/cgroup/batch/memory.current", "3000\n");
  kernel.say("/sys/fs/cgroup/batch/memory.stat",
             "anon 1000\ninactive_file 700\nactive_file 300\nslab 90\n");
  kernel.say("/sys/fs/cgroup/batch/job/memory.max", "4000\n");
  kernel.say("/sys/fs/cgroup/batch/job/memory.current", "1000\n");
  kernel.say("/sys/fs/cgroup/memory.max", "max\n");
  kernel.say("/sys/fs/cgroup/memory.current", "9000\n");
  // The kernel frees files in the cache when asked.
  CHECK(kernel.limits() == Limits{{"the control group /batch/job", 3000.0}});
  kernel.say("/sys/fs/cgroup/batch/memory.max", "4900\n");
  CHECK(kernel.limits() == Limits{{"the control group /batch", 2900.0}});
}

TEST_CASE("control groups of version 1 limit on every level", "[tools][memory]") {
  const Kernel kernel;
  kernel.say("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/job\n0::/other\n");
  kernel.say("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4000\n");
  kernel.say("/sys/fs/cgroup/memory/job/memory.usage_in_bytes", "1500\n");
  kernel.say("/sys/fs/cgroup/memory/job/memory.stat",
             "inactive_file 99\ntotal_inactive_file 200\ntotal_active_file 300\n");
  kernel.say("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9000\n");
  kernel.say("/sys/fs/cgroup/memory/memory.usage_in_bytes", "8500\n");
  CHECK(kernel.limits() == Limits{{"the control group /", 500.0}});
  kernel.say("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  CHECK(kernel.limits() == Limits{{"the control group /job", 3000.0}});
}

TEST_CASE("a container that knows its group by a name of outside finds its limit at the root",
          "[tools][memory]") {
  const Kernel kernel;
  kernel.say("/proc/self/cgroup", "0::/docker/0123456789abcdef\n");
  kernel.say("/sys/fs/cgroup/memory.max", "4000\n");
  kernel.say("/sys/fs/cgroup/memory.current", "5000\n");  // above the limit: no memory is left
  CHECK(kernel.limits() == Limits{{"the control group /", 0.0}});
}

TEST_CASE("where the kernel says nothing that can be read there is no limit", "[tools][memory]") {
  const Kernel kernel;
  CHECK(kernel.limits().empty());
  kernel.say("/proc/meminfo", "MemAvailable: some\n");
  kernel.say("/proc/self/cgroup", "nonsense\n0::/\n4:memory:\n");
  kernel.say("/sys/fs/cgroup/memory.max", "max\n");
  CHECK(kernel.limits().empty());
}

TEST_CASE("this machine says something", "[tools][memory]") {
  CHECK_FALSE(memory_limits(1).empty());
}

}  // namespace stagecraft::tools
