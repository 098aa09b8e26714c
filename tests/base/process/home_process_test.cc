#include "stagecraft/base/process/home_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "stagecraft/tests/support/catch.h"

namespace stagecraft {
namespace {

TEST_CASE("an object is at home in the process that made it, and not in its child",
          "[base][process]") {
  const HomeProcess home;
  CHECK(home.is_here());
  CHECK_NOTHROW(home.require_here("a trainer"));
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {
    int status = home.is_here() ? 1 : 2;
    try {
      home.require_here("a trainer");
    } catch (const Error& error) {
      const std::string text = error.message();
      const bool names_both =
          text.starts_with("a trainer was made in process " + std::to_string(parent) +
                           " and is used in its child " + std::to_string(getpid()));
      status = error.code() == Errc::UsageArgument && names_both && status == 2 ? 0 : 3;
    }
    _exit(status);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace stagecraft
