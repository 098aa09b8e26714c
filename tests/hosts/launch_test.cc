/// Tests workers on separate hosts: ssh starts them, they end with their driver, and a failed one
/// is named.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>

#include "stagecraft/tests/hosts/skip.h"
#include "stagecraft/tests/support/eventually.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;

constexpr const char* kWorker = "worker";

/// Returns words that train on the first host with workers on the others.
std::vector<std::string> command_launch_words(const TestHosts& hosts,
                                              const std::string& file,
                                              const std::vector<std::string>& more) {
  std::vector<std::string> words{STAGECRAFT_COMMAND,
                                 "launch",
                                 "--hosts",
                                 file,
                                 "--ssh",
                                 hosts.ssh(),
                                 "--log-dir",
                                 hosts.folder() + "/logs",
                                 "--",
                                 "train"};
  words.insert(words.end(), more.begin(), more.end());
  return hosts.on(0, words);
}

bool has_no_workers(const TestHosts& hosts, int host, std::chrono::seconds limit) {
  return eventually([&] { return hosts.processes(host, kWorker).empty(); }, limit);
}

TEST_CASE("a launch over ssh trains on three hosts with the bits of one process", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(4);
  const CommandResult run = run_command(
      command_launch_words(hosts, hosts.file(1), {"--layers", "3", "--steps", "3", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
  for (int host = 1; host < hosts.size(); ++host) {
    CHECK(has_no_workers(hosts, host, std::chrono::seconds(10)));
    CHECK(std::filesystem::exists(hosts.folder() + "/logs/rank-" + std::to_string(host - 1) +
                                  ".log"));
  }
}

TEST_CASE("hosts read a text themselves, with the bits of one process", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const CommandResult run = run_command(command_launch_words(
      hosts, hosts.file(1), {"--layers", "2", "--steps", "3", "--read-on-workers", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out, ContainsSubstring("equal"));
}

TEST_CASE("four copies on two hosts add gradients as one process does", "[hosts]") {
  skip_without_hosts();
  constexpr int kSlots = 2;
  const TestHosts hosts(3);
  const CommandResult run = run_command(command_launch_words(
      hosts,
      hosts.file(1, kSlots),
      {"--layers", "2", "--stages", "1", "--dp", "4", "--steps", "3", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.out,
             ContainsSubstring("bit-equal to one process that adds gradients as the ranks do"));
}

TEST_CASE("so does a schedule of one's own, by two hosts", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const std::string file = hosts.folder() + "/own.txt";
  REQUIRE(run_command({STAGECRAFT_COMMAND,
                       "schedule",
                       "make",
                       "gpipe",
                       "--devices",
                       "2",
                       "--microbatches",
                       "4",
                       "-o",
                       file})
              .exit_code == 0);
  const CommandResult run = run_command(
      command_launch_words(hosts, hosts.file(1), {"--schedule", file, "--steps", "3", "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
}

TEST_CASE("a host takes more workers than its sshd lets in at once", "[hosts][scale]") {
  skip_without_hosts();
  constexpr int kSlots = 24;
  const TestHosts hosts(2);
  const CommandResult run = run_command(
      command_launch_words(hosts,
                           hosts.file(1, kSlots),
                           {"--layers", "24", "--dim", "16", "--heads", "2", "--steps", "1"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(std::filesystem::exists(hosts.folder() + "/logs/rank-" + std::to_string(kSlots - 1) +
                                ".log"));
}

TEST_CASE("more workers than open files allow are refused before any is started",
          "[hosts][scale][refusals]") {
  const CommandResult run = run_command({"bash",
                                         "-c",
                                         "ulimit -n 100; exec \"$@\"",
                                         "bash",
                                         STAGECRAFT_COMMAND,
                                         "train",
                                         "--workers",
                                         "processes",
                                         "--ranks",
                                         "24",
                                         "--layers",
                                         "24",
                                         "--steps",
                                         "1"});
  INFO(run.out << run.err);
  CHECK(run.exit_code != 0);
  CHECK_THAT(run.err,
             ContainsSubstring("24 worker processes need about 304 open files") &&
                 ContainsSubstring("may have 100") && ContainsSubstring("ulimit -Hn 304"));
}

TEST_CASE("workers on other hosts end when their driver is killed, and leave no credentials",
          "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const TemporaryFolder runtime;  // gets the credentials that workers receive by ssh
  std::string lines;
  for (const int host : {1, 2}) {
    lines += TestHosts::name(host) + " addr=" + TestHosts::address(host) +
             " XDG_RUNTIME_DIR=" + runtime.path() + "\n";
  }
  const std::string file = runtime.write("hosts", lines);
  const auto folders = [&] {
    return std::ranges::count_if(std::filesystem::directory_iterator(runtime.path()),
                                 [](const auto& entry) { return entry.is_directory(); });
  };
  RunningCommand run(command_launch_words(hosts, file, {"--steps", "100000", "--json"}));
  REQUIRE(run.wait_for_output("\"step\""));
  for (const int host : {1, 2}) {
    CHECK_FALSE(hosts.processes(host, kWorker).empty());
  }
  CHECK(folders() == 2);
  for (const int process : hosts.processes(0, "--steps")) {
    kill(process, SIGKILL);
  }
  static_cast<void>(run.wait());
  for (const int host : {1, 2}) {
    CHECK(has_no_workers(hosts, host, std::chrono::seconds(10)));
  }
  CHECK(folders() == 0);
}

TEST_CASE("a worker that is killed on another host is named with it", "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  RunningCommand run(command_launch_words(hosts, hosts.file(1), {"--steps", "100000", "--json"}));
  REQUIRE(run.wait_for_output("\"step\""));
  for (const int process : hosts.processes(2, kWorker)) {
    if (read_text_file("/proc/" + std::to_string(process) + "/comm") == "stagecraft\n") {
      kill(process, SIGKILL);
    }
  }
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 1);
  CHECK_THAT(end.err,
             ContainsSubstring("rank 1") && ContainsSubstring("on host-2") &&
                 ContainsSubstring("was killed by signal 9"));
}

TEST_CASE("a host whose link goes down is named", "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  RunningCommand run(command_launch_words(hosts, hosts.file(1), {"--steps", "100000", "--json"}));
  REQUIRE(run.wait_for_output("\"step\""));
  hosts.set_link(2, false);
  const CommandResult end = run.wait();
  INFO(end.err);
  CHECK(end.exit_code == 1);
  CHECK_THAT(end.err,
             ContainsSubstring("rank 1") && ContainsSubstring("on host-2") &&
                 ContainsSubstring("out of reach"));
  CHECK(has_no_workers(hosts, 2, std::chrono::seconds(10)));
}

TEST_CASE("a host that ssh does not reach is named before anything trains", "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  hosts.set_link(2, false);
  const CommandResult run =
      run_command(command_launch_words(hosts, hosts.file(1), {"--steps", "3"}));
  INFO(run.err);
  CHECK(run.exit_code != 0);
  CHECK_THAT(run.err, ContainsSubstring("rank 1") && ContainsSubstring("host-2"));
}

TEST_CASE("workers that are started by hand may come before their driver", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const std::string cluster = hosts.folder() + "/cluster";
  REQUIRE(run_command({STAGECRAFT_COMMAND, "credentials", "make", cluster, "--workers", "2"})
              .exit_code == 0);
  std::vector<std::unique_ptr<RunningCommand>> workers;
  for (const int host : {1, 2}) {
    workers.push_back(std::make_unique<RunningCommand>(
        hosts.on(host,
                 {STAGECRAFT_COMMAND,
                  "worker",
                  "--join",
                  TestHosts::address(0) + ":7077",
                  "--credentials",
                  cluster + "/worker-" + std::to_string(host - 1)})));
  }
  const CommandResult run = run_command(hosts.on(0,
                                                 {"env",
                                                  "STAGECRAFT_PORT=7077",
                                                  "STAGECRAFT_INTERFACE=eth0",
                                                  STAGECRAFT_COMMAND,
                                                  "train",
                                                  "--workers",
                                                  "joining",
                                                  "--credentials",
                                                  cluster,
                                                  "--ranks",
                                                  "2",
                                                  "--steps",
                                                  "3",
                                                  "--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  for (const auto& worker : workers) {
    CHECK(worker->wait().exit_code == 0);
  }
}

}  // namespace
}  // namespace stagecraft::tests
