#include "stagecraft/actors/security/temporary_credentials.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <latch>
#include <memory>
#include <string>
#include <thread>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/actors/security/credentials.h"
#include "stagecraft/actors/security/credentials_report.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"

namespace stagecraft::tests {
namespace {

namespace fs = std::filesystem;
using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

TEST_CASE("temporary credentials go with their object, not with its copy in a child",
          "[security]") {
  const TemporaryFolder folder;
  const EnvironmentVariable runtime("XDG_RUNTIME_DIR", folder.path() + "/none");
  const EnvironmentVariable temporary("TMPDIR", folder.path());
  std::string dir;
  {
    const TemporaryCredentials credentials(2);
    dir = credentials.dir();
    CHECK(fs::path(dir).parent_path() == folder.path());  // the first place is not there
    CHECK(fs::status(dir).permissions() == fs::perms::owner_all);
    CHECK_NOTHROW(load_credentials(dir + "/driver"));
    CHECK_NOTHROW(load_credentials(dir + "/" + worker_name(1)));
    const auto report = security::inspect_credentials(dir);
    CHECK(report.members.at(0).certificate->valid_until - std::chrono::system_clock::now() <= 24h);
    // A run of several days continues, and a process that finds the folder can make no member.
    CHECK(report.authority->valid_until - std::chrono::system_clock::now() > 300 * 24h);
    CHECK_FALSE(fs::exists(dir + "/ca-key.pem"));
    CHECK_THROWS_WITH(issue_member(dir, "worker-1", 24h), ContainsSubstring("authority's key"));
    credentials.issue("worker-1", 48h);
    credentials.issue("worker-7", 24h);
    CHECK_NOTHROW(load_credentials(dir + "/worker-7"));
    const auto renewed = security::inspect_credentials(dir);
    CHECK(std::ranges::any_of(renewed.members, [](const auto& member) {
      return member.certificate->valid_until - std::chrono::system_clock::now() > 47h;
    }));
  }
  CHECK_FALSE(fs::exists(dir));

  auto made = std::make_unique<TemporaryCredentials>(1);
  const pid_t child = fork();
  if (child == 0) {
    made.reset();
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(fs::exists(made->dir() + "/driver/key.pem"));
}

TEST_CASE("after a removal by any thread nothing is left of temporary credentials", "[security]") {
  for (int round = 0; round < 20; ++round) {
    const TemporaryCredentials credentials(4);
    std::latch both(2);
    std::array<bool, 2> left{};
    const auto remove = [&](bool& is_left) {
      both.arrive_and_wait();
      credentials.remove();
      is_left = fs::exists(credentials.dir());  // left over if the process ended here
    };
    std::thread other([&] { remove(left[0]); });
    remove(left[1]);
    other.join();
    CHECK_FALSE(left[0]);
    CHECK_FALSE(left[1]);
  }
}

}  // namespace
}  // namespace stagecraft::tests
