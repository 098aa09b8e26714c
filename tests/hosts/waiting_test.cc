/// Tests drivers that wait for workers and workers that wait for drivers, with a deadline, and the
/// messages meanwhile; workers' output is passed on and kept by rank.
#include <filesystem>
#include <regex>

#include "stagecraft/tests/hosts/cluster_words.h"
#include "stagecraft/tests/hosts/skip.h"

namespace stagecraft::tests {
namespace {

using Catch::Matchers::ContainsSubstring;
const Words kTraining{"train", "--steps", "3"};
const Words kDriver = join({STAGECRAFT_COMMAND}, kTraining);
const Words kHere{"STAGECRAFT_INTERFACE=eth0"};

TEST_CASE("a worker whose driver does not come says where it looked and for how long",
          "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(2);
  const Joining joining(hosts);
  const auto [to, why] = GENERATE(table<std::string, std::string>(
      {{"10.77.0.1", "10.77.0.1: Connection refused"}, {"no-driver", "no-driver is no name"}}));
  const CommandResult run = run_command(joining.worker(1, to, {"--patience", "1500"}));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring("nobody has answered at " + to + ":7077 within 1500 ms") &&
                 ContainsSubstring(why));
}

TEST_CASE("so does one whose link is down", "[hosts][faults]") {
  skip_without_hosts();
  const TestHosts hosts(2);
  const Joining joining(hosts);
  hosts.set_link(1, false);
  const CommandResult run = run_command(joining.worker(1, "10.77.0.1", {"--patience", "2000"}));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(
      run.err,
      ContainsSubstring("nobody has answered at 10.77.0.1:7077 within 2000 ms (10.77.0.1: "));
}

TEST_CASE("a worker that nobody needs says so when its patience ends", "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const Joining joining(hosts);
  // The only place waits for worker-0, and this one is worker-1.
  RunningCommand driver(joining.driver(kDriver, join(kHere, {"STAGECRAFT_RANKS=1"})));
  REQUIRE(driver.wait_for_error("workers join at 10.77.0.1:7077"));
  const CommandResult run = run_command(joining.worker(2, "10.77.0.1", {"--patience", "5000"}));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(
      run.err,
      ContainsSubstring("the driver at 10.77.0.1:7077 has not admitted this worker within 5000 "
                        "ms: it has the worker of this certificate, or needs none with its "
                        "number"));
}

TEST_CASE("a worker that asks for the place of another is refused, and disturbs nobody",
          "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const Joining joining(hosts);
  RunningCommand driver(joining.driver(kDriver, kHere));
  REQUIRE(driver.wait_for_error("workers join at 10.77.0.1:7077"));
  const CommandResult thief = run_command(joining.worker(1, "10.77.0.1", {"--place", "1"}));
  INFO(thief.err);
  CHECK(thief.exit_code == 1);
  CHECK_THAT(thief.err,
             ContainsSubstring("the certificate of this process is that of worker-0, and it asks "
                               "for the place of worker-1"));
  CHECK(driver.wait_for_error("certificate of worker-0 asked for the place of worker-1"));
  RunningCommand first(joining.worker(1, "10.77.0.1"));
  RunningCommand second(joining.worker(2, "10.77.0.1"));
  const CommandResult run = driver.wait();
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
}

TEST_CASE("a driver whose workers do not come says who is missing and how to start them",
          "[hosts][refusals]") {
  skip_without_hosts();
  const TestHosts hosts(1);
  const Joining joining(hosts);
  const CommandResult run =
      run_command(joining.driver(kDriver, join(kHere, {"STAGECRAFT_JOIN_SECONDS=4"})));
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring("train: 0 of 2 workers; missing rank 0, rank 1\n") &&
                 ContainsSubstring("not all workers have joined within 4000 ms: 0 of 2 workers; "
                                   "missing rank 0, rank 1; start them, each with a folder of "
                                   "its own, with stagecraft worker --join 10.77.0.1:7077") &&
                 ContainsSubstring("train: start each worker with a folder of its own: stagecraft "
                                   "worker --join 10.77.0.1:7077 --credentials "));
  CHECK_THAT(run.err, !ContainsSubstring("on this host alone"));

  const CommandResult alone = run_command(joining.driver(kDriver, {"STAGECRAFT_JOIN_SECONDS=1"}));
  INFO(alone.err);
  CHECK_THAT(alone.err,
             ContainsSubstring("--join 127.0.0.1:7077 --credentials ") &&
                 ContainsSubstring("/worker-0, on this host alone") &&
                 ContainsSubstring("STAGECRAFT_INTERFACE"));
}

TEST_CASE("while workers come one by one, each line says who is still missing", "[hosts]") {
  skip_without_hosts();
  const TestHosts hosts(3);
  const Joining joining(hosts);
  RunningCommand driver(joining.driver(kDriver, kHere));
  REQUIRE(driver.wait_for_error("train: 0 of 2 workers; missing rank 0, rank 1\n"));
  RunningCommand first(joining.worker(1, "10.77.0.1"));
  REQUIRE(driver.wait_for_error("train: 1 of 2 workers; missing rank 1\n"));
  RunningCommand second(joining.worker(2, "10.77.0.1"));
  const CommandResult run = driver.wait();
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK(std::regex_search(
      run.err,
      std::regex("train: rank 1: process [0-9]+ on host-2, tensors arrive at tcp://10.77.0.3:")));
}

/// Runs `launch` of two workers; this script is the second host's worker, and supplies its output.
struct Scripted {
  explicit Scripted(const std::string& script)
      : program(folder.write("script", "#!/bin/sh\n" + script)) {
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }

  [[nodiscard]] CommandResult run(const Words& options, const Words& training) const {
    const std::string file = folder.write(
        "lines",
        "host-1 addr=10.77.0.2\nhost-2 addr=10.77.0.3 GREETING=hello worker=" + program + "\n");
    return run_command(launch_words(hosts, file, training, options));
  }

  const TestHosts hosts{3};
  const TemporaryFolder folder;
  const std::string program;
};

TEST_CASE("a worker behind ssh that does not join is missed by rank and host", "[hosts][faults]") {
  skip_without_hosts();
  const Scripted scripted("exec sleep 1000\n");
  const CommandResult run = scripted.run({"--join-seconds", "15"}, kTraining);
  INFO(run.err);
  CHECK(run.exit_code == 1);
  CHECK_THAT(run.err,
             ContainsSubstring("1 of 2 workers; missing rank 1 on host-2\n") &&
                 ContainsSubstring("not all workers have joined within 15000 ms: 1 of 2 workers; "
                                   "missing rank 1 on host-2"));
}

TEST_CASE("what a worker writes comes out behind its rank and host, and is kept by rank",
          "[hosts]") {
  skip_without_hosts();
  const Scripted scripted(
      "echo \"$GREETING from $(hostname)\"\necho trouble >&2\nshift\nexec " STAGECRAFT_COMMAND
      " worker \"$@\"\n");
  const std::string logs = scripted.folder.path() + "/logs/of this run";
  const CommandResult run = scripted.run({"--log-dir", logs}, join(kTraining, {"--verify"}));
  INFO(run.out << run.err);
  CHECK(run.exit_code == 0);
  CHECK_THAT(run.err,
             ContainsSubstring("[rank 1 host-2] hello from host-2\n") &&
                 ContainsSubstring("[rank 1 host-2] trouble\n"));
  CHECK_THAT(read_text_file(logs + "/rank-1.log"),
             ContainsSubstring("hello from host-2\ntrouble\n") &&
                 ContainsSubstring(" driver: rank 1 runs in process ") &&
                 ContainsSubstring(" on host-2, tensors arrive at tcp://") &&
                 ContainsSubstring(" driver: rank 1 runs stage 1\n") &&
                 ContainsSubstring(" driver: rank 1 ends with its cluster\n"));
  CHECK_THAT(read_text_file(logs + "/rank-0.log"),
             ContainsSubstring(" driver: rank 0 runs in process ") && !ContainsSubstring("hello"));
}

TEST_CASE("a folder for logs that cannot be made is told before anything trains",
          "[hosts][refusals]") {
  skip_without_hosts();
  const Scripted scripted("exit 1\n");
  const CommandResult run = scripted.run({"--log-dir", scripted.program}, kTraining);
  INFO(run.err);
  CHECK(run.exit_code == 2);
  CHECK_THAT(run.err, ContainsSubstring("cannot be written to " + scripted.program));
}

}  // namespace
}  // namespace stagecraft::tests
