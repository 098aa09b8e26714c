/// Holds the contract of `actors/launch/launcher.h` as a list of cases that every launcher and
/// every way of starting workers has to pass.
///
/// A test says how its launcher is made, and runs the list:
///
///     TEST_CASE("threads keep the launcher contract", "[integration][launch]") {
///       const LauncherCase& contract = GENERATE(from_range(launcher_cases()));
///       DYNAMIC_SECTION(contract.name) { contract.run(threads, job_of_two_ranks()); }
///     }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "stagecraft/actors/executor/setup/rank_setup.h"
#include "stagecraft/actors/launch/launcher.h"

namespace stagecraft::tests {

void send_real_signal(std::int64_t process, int signal);
/// A process that has ended counts as ended, even if nobody has waited for it yet.
[[nodiscard]] bool is_really_alive(std::int64_t process);

/// A new launcher for two ranks, and what its test knows about it.
struct LauncherUnderTest {
  std::shared_ptr<Launcher> launcher;
  /// Ranks live in processes of their own, which can be killed and replaced.
  bool has_processes = true;
  /// The cause that is reported for a worker killed by signal 9, after "process 4711".
  std::string cause_of_kill;
  std::string host;  ///< of rank 1 (WorkerPlace::host)
  /// Brings a worker for a place that is about to be replaced; empty: the launcher starts it.
  std::function<void(int place)> bring;
  std::shared_ptr<void> kept = nullptr;  ///< lives as long as the launcher is tested
  /// Processes exist before a crew needs them.
  bool starts_early = false;
  /// A stopped process is given up soon enough for a test.
  bool gives_up_soon = false;
  /// Sends SIGKILL or SIGSTOP to a process, and says whether it lives, even if it stands still.
  std::function<void(std::int64_t process, int signal)> send_signal = send_real_signal;
  std::function<bool(std::int64_t process)> is_alive = is_really_alive;
  /// Returns whether the cause of the rank's end follows its loss within kCauseLimit. Empty: it
  /// should, but the load of the host decides.
  std::function<bool(int rank)> is_told_in_time = nullptr;
  /// The cause if the loss of the killed worker is known long before its end; empty: never.
  std::string late_cause_of_kill = {};
};

using MakeLauncher = std::function<LauncherUnderTest()>;

struct LauncherCase {
  std::string name;                                  ///< a sentence
  void (*run)(const MakeLauncher&, const Job& job);  ///< `job`: work for two ranks
};

[[nodiscard]] const std::vector<LauncherCase>& launcher_cases();

/// Returns work for two ranks. The first call compiles it.
[[nodiscard]] const Job& job_of_two_ranks();

}  // namespace stagecraft::tests
