#include "stagecraft/actors/messages/actor_host.h"

#include <sys/wait.h>
#include <unistd.h>

#include "stagecraft/base/error.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/no_new_threads.h"

namespace stagecraft {

TEST_CASE("an actor system for which there are no threads is an error, and nobody waits (AH-2)",
          "[actors][memory]") {
  const pid_t child = fork();  // which has no system yet
  if (child == 0) {
    alarm(60);
    const NoNewThreads none;
    try {
      (void)ActorHost::of_this_process();
    } catch (const Error& error) {
      _exit(error.code() == Errc::DeviceOutOfMemory ? 0 : 1);
    }
    _exit(2);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

}  // namespace stagecraft
