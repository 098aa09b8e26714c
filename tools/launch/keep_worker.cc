#include "stagecraft/tools/launch/keep_worker.h"

#include <signal.h>
#include <sys/wait.h>

#include <iostream>
#include <optional>

#include <fmt/format.h>
#include <time.h>

#include "stagecraft/tools/launch/program.h"

namespace stagecraft::tools {
namespace {

using Clock = std::chrono::steady_clock;

/// Pauses between two looks for a call. Each look asks the file system, and there may be many
/// workers that live long; but an end is soon followed by a call or by the end of the program.
constexpr timespec kWhileItLives{.tv_sec = 1, .tv_nsec = 0};
constexpr timespec kAfterItsEnd{.tv_sec = 0, .tv_nsec = 100'000'000};

/// Waits until a child has ended, for a pause at most.
void wait_for_child(const timespec& pause) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGCHLD);
  static_cast<void>(sigtimedwait(&ends, nullptr, &pause));
}

/// Waits for the end of a worker. Ends it if the program calls for another one (KW-2).
ExitCode end_of_worker(pid_t worker, const std::function<bool()>& is_called) {
  int status = 0;
  while (waitpid(worker, &status, WNOHANG) == 0) {
    if (is_called()) {
      kill(worker, SIGKILL);
      waitpid(worker, &status, 0);
      break;
    }
    wait_for_child(kWhileItLives);
  }
  return status_of(status);
}

/// Returns whether the program calls for another worker (KW-1).
bool await_call(const StepGuest& guest,
                std::chrono::seconds patience,
                const std::function<bool()>& is_called) {
  const Clock::time_point deadline = Clock::now() + patience;
  while (!guest.is_over() && Clock::now() < deadline) {
    if (is_called()) {
      return true;
    }
    wait_for_child(kAfterItsEnd);  // there is none
  }
  return false;
}

}  // namespace

ExitCode keep_worker(
    StepGuest& guest,
    std::chrono::seconds patience,
    const std::function<std::vector<std::string>(const std::string& driver)>& arguments) {
  ExitCode status = ExitCode::Good;
  while (const std::optional<std::string> driver = guest.await_driver()) {
    const std::string call = guest.call();
    const auto is_called = [&] {
      const std::string now = guest.call();
      return !now.empty() && now != call;
    };
    status = end_of_worker(start_worker(arguments(*driver)), is_called);
    if (!await_call(guest, patience, is_called)) {
      break;
    }
    std::cerr << fmt::format(
                     "stagecraft launch: {} has ended with status {}; the program calls for "
                     "another one, and it starts here\n",
                     guest.worker(),
                     static_cast<int>(status))
              << std::flush;
  }
  return status;
}

}  // namespace stagecraft::tools
