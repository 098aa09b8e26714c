#include "stagecraft/tools/train/interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/exit_code.h"

namespace stagecraft::tools {
namespace {

using Handler = void (*)(int);

Handler handler_of(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

/// What `work` writes to the standard error of this process: little enough for a pipe.
std::string said_by(const std::function<void()>& work) {
  std::array<int, 2> ends{};
  REQUIRE(pipe2(ends.data(), O_CLOEXEC) == 0);
  const int before = dup(STDERR_FILENO);
  dup2(ends[1], STDERR_FILENO);
  work();
  dup2(before, STDERR_FILENO);
  close(before);
  close(ends[1]);
  std::array<char, 4096> text{};
  const ssize_t size = read(ends[0], text.data(), text.size());
  close(ends[0]);
  return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
}

}  // namespace

TEST_CASE("the first signal is noted and answered, and leaves none of them handled",
          "[tools][signals]") {
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const Interrupt interrupt(/*saves=*/true, "\n");
  CHECK(interrupt.received() == 0);
  const std::string said = said_by([&] { std::raise(signal); });
  CHECK(interrupt.received() == signal);
  CHECK(said == "\nstagecraft: finishing this step, then saving; again to stop without saving\n");
  for (const int each : {SIGINT, SIGTERM, SIGHUP}) {
    CHECK(handler_of(each) == SIG_DFL);  // the second ends the process
  }
}

TEST_CASE("what is said fits what the run is at", "[tools][signals]") {
  const auto said_in = [](bool saves, Interrupt::Phase phase) {
    Interrupt interrupt(saves, "");
    interrupt.enter(phase);
    return said_by([] { std::raise(SIGTERM); });
  };
  CHECK(said_in(false, Interrupt::Phase::Steps) ==
        "stagecraft: finishing this step; again to stop at once\n");
  CHECK(said_in(true, Interrupt::Phase::Saving) ==
        "stagecraft: saving; again to stop without saving\n");
  CHECK(said_in(true, Interrupt::Phase::Ending) == "stagecraft: ending; again to stop at once\n");
}

TEST_CASE("signals are as before when it is over, and an ignored hang-up is never ours (I-2)",
          "[tools][signals]") {
  const auto hangup = std::signal(SIGHUP, SIG_IGN);
  const Handler interruption = handler_of(SIGINT);
  {
    const Interrupt interrupt(false, "");
    CHECK(handler_of(SIGINT) != interruption);
    CHECK(handler_of(SIGHUP) == SIG_IGN);
    (void)said_by([] { std::raise(SIGINT); });
    CHECK(handler_of(SIGHUP) == SIG_IGN);
  }
  CHECK(handler_of(SIGINT) == interruption);
  CHECK(handler_of(SIGHUP) == SIG_IGN);
  std::signal(SIGHUP, hangup);
}

TEST_CASE("a signal has a name and an exit status", "[tools][signals]") {
  CHECK(signal_name(SIGTERM) == "SIGTERM");
  CHECK(static_cast<int>(interrupted_by(SIGINT)) == 130);
}

}  // namespace stagecraft::tools
