#include "stagecraft/tools/doctor/checks/credential_checks.h"

#include <chrono>
#include <string>

#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/tools/doctor/exams.h"

namespace stagecraft::tools {
namespace {

using Catch::Matchers::ContainsSubstring;

using namespace std::chrono_literals;

TEST_CASE("credentials are told with their dates, and what to renew", "[tools][doctor]") {
  const tests::TemporaryFolder folder;
  const std::string dir = folder.path() + "/cluster";
  const auto now = std::chrono::system_clock::now();
  make_credentials(dir, {.members = 1, .cluster = "north", .starts = now, .durable = false});
  const auto look = [&](const std::string& place, security::TimePoint when) {
    return check_credentials(security::inspect_credentials(place), place, when);
  };
  CHECK(found(look(dir, now), "worker-0").level == Level::Ok);
  CHECK_THAT(found(look(dir, now), "driver").what, ContainsSubstring("valid until"));
  CHECK(found(look(dir, now + 24h * 6 + 1h), "worker-0").level == Level::Note);
  CHECK_THAT(found(look(dir, now + 24h * 7), "worker-0").remedy,
             ContainsSubstring("credentials renew " + dir + " worker-0"));
  issue_member(dir, "worker-0", 60s, now - 24h);
  CHECK(found(look(dir, now), "worker-0").level == Level::Problem);
  CHECK_THAT(found(look(dir + "/worker-0", now), "worker-0").remedy,
             ContainsSubstring("renew DIR worker-0"));
}

}  // namespace
}  // namespace stagecraft::tools
