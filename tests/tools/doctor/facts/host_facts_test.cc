#include "stagecraft/tools/doctor/facts/host_facts.h"

#include <sys/resource.h>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft::tools {
namespace {

/// Lowers the soft limit of this process while it lives.
class SoftLimit {
 public:
  SoftLimit(decltype(RLIMIT_NOFILE) resource, rlim_t soft) : resource_(resource) {
    REQUIRE(getrlimit(resource_, &before_) == 0);
    const struct rlimit lower { soft, before_.rlim_max };
    REQUIRE(setrlimit(resource_, &lower) == 0);
  }
  ~SoftLimit() { setrlimit(resource_, &before_); }
  SoftLimit(const SoftLimit&) = delete;
  SoftLimit& operator=(const SoftLimit&) = delete;

  [[nodiscard]] rlim_t hard() const { return before_.rlim_max; }

 private:
  decltype(RLIMIT_NOFILE) resource_;
  struct rlimit before_ {};
};

TEST_CASE("programs may lock memory to the soft limit, and open files to the hard one",
          "[tools][doctor]") {
  const SoftLimit locked(RLIMIT_MEMLOCK, 4096);
  const SoftLimit files(RLIMIT_NOFILE, 64);
  const HostFacts facts = facts_of_this_machine();
  CHECK(facts.locked_bytes == 4096);
  CHECK(facts.open_files ==
        (files.hard() == RLIM_INFINITY ? -1 : static_cast<std::int64_t>(files.hard())));
}

TEST_CASE("this machine has facts for every check", "[tools][doctor]") {
  const HostFacts facts = facts_of_this_machine();
  CHECK_FALSE(facts.name.empty());
  CHECK_FALSE(facts.build.empty());
  CHECK_FALSE(facts.cpu.capability.empty());
  CHECK(facts.processors > 0);
  CHECK_FALSE(facts.memory.empty());
  CHECK(facts.memfd.empty());
  CHECK(facts.gpu.missing.empty() == facts.gpu.remedy.empty());
}

}  // namespace
}  // namespace stagecraft::tools
