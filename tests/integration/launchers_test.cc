/// Tests that every launcher, and every way in which worker processes come to a fleet, keeps the
/// contract.
#include <array>
#include <filesystem>
#include <set>
#include <string_view>

#include "stagecraft/actors/launch/fleet/processes.h"
#include "stagecraft/actors/launch/threads.h"
#include "stagecraft/actors/launch/ways/ways.h"
#include "stagecraft/actors/launch/worker/worker_program.h"
#include "stagecraft/actors/security/cluster_credentials.h"
#include "stagecraft/base/process/host_name.h"
#include "stagecraft/tests/conformance/launcher_conformance.h"
#include "stagecraft/tests/support/catch.h"
#include "stagecraft/tests/support/command.h"
#include "stagecraft/tests/support/environment_variable.h"

namespace stagecraft::tests {
namespace {

LauncherUnderTest threads() {
  return {.launcher = std::make_shared<ThreadLauncher>(),
          .has_processes = false,
          .cause_of_kill = {},
          .host = {},
          .bring = {}};
}

LauncherUnderTest here() {
  return {.launcher = launch_processes({.silence = std::chrono::milliseconds(2500)}, 2),
          .cause_of_kill = "was killed by signal 9 (Killed)",
          .host = {},
          .bring = {},
          .gives_up_soon = true};
}

/// Reaches "other hosts", which are this one, by a script in the place of ssh.
LauncherUnderTest by_ssh() {
  const auto folder = std::make_shared<TemporaryFolder>();
  const std::string ssh =
      folder->write("ssh", "#!/bin/sh\nfor command; do :; done\nexec sh -c \"$command\"\n");
  std::filesystem::permissions(ssh, std::filesystem::perms::owner_all);
  return {.launcher = launch_processes({.hosts = {{.name = "node-a"}, {.name = "node-b"}},
                                        .ssh = {ssh},
                                        .interface = "127.0.0.1"},
                                       2),
          .cause_of_kill = "on node-b was killed by signal 9 (Killed)",
          .host = host_name(),
          .bring = {},
          .kept = folder};
}

/// Workers that the test starts, as a person or a batch system does, and their meeting place.
class Joining {
 public:
  /// Starts a worker that waits for its driver's address.
  void start(int place) {
    workers_.push_back(std::make_unique<RunningCommand>(std::vector<std::string>{
        "sh",
        "-c",
        "while [ ! -e \"$1/address\" ]; do sleep 0.02; done\n"
        "exec \"$2\" worker --join \"$(cat \"$1/address\")\" --credentials "
        "\"$1/credentials/$3\" --place $4 --patience 60000",
        "sh",
        folder(),
        find_worker_program("").path,
        worker_name(place),
        std::to_string(place)}));
  }
  [[nodiscard]] std::string folder() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
  std::vector<std::unique_ptr<RunningCommand>> workers_;
};

LauncherUnderTest joining(const SpawnOptions& more, const std::shared_ptr<Joining>& workers) {
  SpawnOptions options = more;
  options.workers_come = true;
  options.meeting_place = workers->folder();
  LauncherUnderTest tested{.launcher = launch_processes(options, 2),
                           .cause_of_kill = "on " + host_name() + " is out of reach",
                           .host = host_name(),
                           .bring = [workers](int place) { workers->start(place); }};
  workers->start(0);
  workers->start(1);
  return tested;
}

LauncherUnderTest by_hand() {
  return joining({}, std::make_shared<Joining>());
}

LauncherUnderTest in_a_step_of_slurm() {
  const EnvironmentVariable process("SLURM_PROCID", "0"), step("SLURM_STEP_ID", "0"),
      tasks("SLURM_STEP_NUM_TASKS", "3");
  return joining({.workers_coming = 2}, std::make_shared<Joining>());
}

struct LauncherRow {
  std::string_view name;  ///< of its way in the table of ways, or of threads
  LauncherUnderTest (*make)();
};

constexpr std::array kLaunchers{LauncherRow{"threads", threads},
                                LauncherRow{"here", here},
                                LauncherRow{"ssh", by_ssh},
                                LauncherRow{"joining", by_hand},
                                LauncherRow{"slurm", in_a_step_of_slurm}};

TEST_CASE("every launcher keeps the contract", "[integration][processes][launch]") {
  const LauncherRow& launcher = GENERATE(from_range(kLaunchers));
  const LauncherCase& contract = GENERATE(from_range(launcher_cases()));
  DYNAMIC_SECTION(launcher.name << ": " << contract.name) {
    contract.run(launcher.make, job_of_two_ranks());
  }
}

TEST_CASE("no way of starting workers is left out of the contract", "[integration][launch]") {
  std::set<std::string_view> tested, known{"threads"};
  for (const LauncherRow& launcher : kLaunchers) {
    tested.insert(launcher.name);
  }
  for (const WayRow& row : all_ways()) {
    known.insert(row.name);
  }
  CHECK((tested == known));
}

}  // namespace
}  // namespace stagecraft::tests
