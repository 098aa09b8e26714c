#include "stagecraft/tools/common/interrupt.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <functional>

#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tools/common/exit_code.h"

namespace stagecraft::tools {
namespace {

using Handler = void (*)(int);

Handler handler_of(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler;
}

/// Returns what `work` writes to the standard error of this process, which must fit into a pipe.
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

/// The parent of the tests may ignore some signals: nohup, a job in the background.
class Defaults {
 public:
  Defaults() {
    struct sigaction standard {};
    standard.sa_handler = SIG_DFL;
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &standard, &before_[i]);
    }
  }
  ~Defaults() {
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      sigaction(kSignals[i], &before_[i], nullptr);
    }
  }
  Defaults(const Defaults&) = delete;
  Defaults& operator=(const Defaults&) = delete;

  static constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

 private:
  std::array<struct sigaction, 3> before_{};
};

std::chrono::nanoseconds time_now{};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

std::chrono::nanoseconds test_clock() {
  return time_now;
}

/// Returns how a process ends that gets `second` this long after `first`: 0, or the signal that
/// ended it.
int end_after(int first, std::chrono::nanoseconds later, int second) {
  const pid_t child = fork();
  if (child == 0) {
    close(STDERR_FILENO);
    const Interrupt interrupt(/*saves=*/true, /*in_line=*/false, &test_clock);
    std::raise(first);
    time_now += later;
    std::raise(second);
    _exit(interrupt.received() == first ? 0 : 1);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK((WIFSIGNALED(status) || WEXITSTATUS(status) == 0));
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

}  // namespace

TEST_CASE("the first signal is noted and answered", "[tools][signals]") {
  const Defaults defaults;
  const int signal = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const Interrupt interrupt(/*saves=*/true, /*in_line=*/true);
  CHECK(interrupt.received() == 0);
  const std::string said = said_by([&] { std::raise(signal); });
  CHECK(interrupt.received() == signal);
  CHECK(said ==
        "\nstagecraft: finishing this step, then saving; again after 1 s to stop without saving\n");
}

TEST_CASE("a signal that comes twice is one, until its interval is over (I-3)",
          "[tools][signals]") {
  const Defaults defaults;
  constexpr std::chrono::nanoseconds kOver = Interrupt::kRepeats + std::chrono::nanoseconds(1);
  const auto [first, second] = GENERATE(table<int, int>(
      {{SIGINT, SIGINT}, {SIGINT, SIGTERM}, {SIGTERM, SIGTERM}, {SIGHUP, SIGTERM}}));
  CAPTURE(first, second);
  CHECK(end_after(first, std::chrono::nanoseconds(0), second) == 0);
  CHECK(end_after(first, Interrupt::kRepeats, second) == 0);
  CHECK(end_after(first, kOver, second) == second);
  // A hang-up never counts as the second signal.
  CHECK(end_after(first, kOver, SIGHUP) == 0);
  CHECK(end_after(SIGHUP, kOver, SIGHUP) == 0);
}

TEST_CASE("what comes once more is not answered once more", "[tools][signals]") {
  const Defaults defaults;
  const Interrupt interrupt(/*saves=*/false, /*in_line=*/false, &test_clock);
  (void)said_by([] { std::raise(SIGTERM); });
  CHECK(said_by([] {
          std::raise(SIGTERM);
          std::raise(SIGHUP);
        }).empty());
  CHECK(interrupt.received() == SIGTERM);
}

TEST_CASE("what is said fits what the run is at", "[tools][signals]") {
  const Defaults defaults;
  const auto said_in = [](bool saves, Interrupt::Phase phase) {
    Interrupt interrupt(saves, /*in_line=*/false);
    interrupt.enter(phase);
    return said_by([] { std::raise(SIGTERM); });
  };
  CHECK(said_in(false, Interrupt::Phase::Steps) ==
        "stagecraft: finishing this step; again after 1 s to stop at once\n");
  CHECK(said_in(true, Interrupt::Phase::Saving) ==
        "stagecraft: saving; again after 1 s to stop without saving\n");
  CHECK(said_in(true, Interrupt::Phase::Ending) ==
        "stagecraft: ending; again after 1 s to stop at once\n");
}

TEST_CASE("signals are as before when it is over, and an ignored one is never ours (I-2)",
          "[tools][signals]") {
  const Defaults defaults;
  const int ignored = GENERATE(SIGINT, SIGTERM, SIGHUP);
  CAPTURE(ignored);
  std::signal(ignored, SIG_IGN);
  {
    const Interrupt interrupt(/*saves=*/false, /*in_line=*/false);
    for (const int signal : Defaults::kSignals) {
      CHECK((handler_of(signal) == SIG_IGN) == (signal == ignored));
      CHECK(handler_of(signal) != SIG_DFL);
    }
    (void)said_by([&] { std::raise(ignored == SIGINT ? SIGTERM : SIGINT); });
    CHECK(handler_of(ignored) == SIG_IGN);
  }
  for (const int signal : Defaults::kSignals) {
    CHECK(handler_of(signal) == (signal == ignored ? SIG_IGN : SIG_DFL));
  }
}

TEST_CASE("a signal has a name and an exit status", "[tools][signals]") {
  CHECK(signal_name(SIGTERM) == "SIGTERM");
  CHECK(static_cast<int>(interrupted_by(SIGINT)) == 130);
}

}  // namespace stagecraft::tools
