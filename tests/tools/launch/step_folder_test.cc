#include "stagecraft/tools/launch/step_folder.h"

#include <filesystem>
#include <thread>

#include "stagecraft/actors/security/temporary_credentials.h"
#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/eventually.h"
#include "stagecraft/tests/support/refusal.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
using namespace std::chrono_literals;

TEST_CASE("a process that comes when process 0 has ended says so, and where else to look",
          "[tools][slurm][refusals]") {
  const TemporaryFolder place;
  const std::string folder = place.path() + "/stagecraft-7.0";
  const std::string message =
      refusal([&] { static_cast<void>(tools::StepGuest(folder, "worker-0", 0s).await_driver()); },
              Errc::ClusterTimeout);
  CHECK(message == "process 0 of this step has not made '" + folder +
                       "' within 0 s, or had ended before this process came: see what process 0 "
                       "says; if it says nothing, do all hosts see that folder? --meeting-place "
                       "names another");
}

TEST_CASE("a process that was there and finds the folder gone knows of the end (STP-1)",
          "[tools][slurm]") {
  const TemporaryFolder place;
  const std::string folder = place.path() + "/stagecraft-7.0";
  std::filesystem::create_directory(folder);
  tools::StepGuest guest(folder, "worker-0", 60s);
  SECTION("with an address it joins") {
    place.write("stagecraft-7.0/address", "10.0.0.1:7077\n");
    CHECK(guest.await_driver() == "10.0.0.1:7077");
    CHECK(std::filesystem::exists(folder + "/worker-0"));
    CHECK_FALSE(guest.is_over());
    std::filesystem::remove_all(folder);
    CHECK(guest.is_over());
    CHECK_FALSE(guest.await_driver().has_value());
  }
  SECTION("without the folder it ends") {
    std::thread process_0([&] {
      (void)eventually([&] { return std::filesystem::exists(folder + "/worker-0"); });
      std::filesystem::remove_all(folder);
    });
    CHECK_FALSE(guest.await_driver().has_value());
    process_0.join();
  }
}

TEST_CASE("a process hears the call for another worker: its certificate is renewed (STP-4)",
          "[tools][slurm]") {
  const TemporaryFolder place;
  const std::string folder = place.path() + "/stagecraft-7.0";
  const tools::StepGuest guest(folder, "worker-1", 60s);
  CHECK(guest.call().empty());
  const TemporaryCredentials made(2, folder + "/credentials");
  const std::string before = guest.call();
  CHECK_FALSE(before.empty());
  made.issue("worker-0", 1h);
  CHECK(guest.call() == before);
  made.issue("worker-1", 1h);
  CHECK(guest.call() != before);
}

TEST_CASE("a folder that processes cannot meet in is refused with the reason",
          "[tools][slurm][refusals]") {
  const TemporaryFolder place;
  const auto said = [](const std::string& folder) {
    return refusal([&] { tools::check_meeting_place(folder); }, Errc::UsageFile);
  };
  CHECK_THAT(
      said(place.path() + "/none"),
      ContainsSubstring("cannot meet in") && ContainsSubstring("it is no folder on this host"));
  tools::check_meeting_place(place.path());
}

}  // namespace
}  // namespace stagecraft::tests
